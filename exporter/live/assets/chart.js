'use strict';

// Charts of the last seconds: one point for each.
const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// duration writes microseconds as people say them.
function duration(us) {
  if (us === null || us === undefined) return '–';
  if (us >= 1e6) return (us / 1e6).toPrecision(3) + ' s';
  if (us >= 1e3) return (us / 1e3).toPrecision(3) + ' ms';
  return Math.round(us) + ' µs';
}

const count = n => n === null || n === undefined ? '–' : n.toLocaleString('en');

const clock = t => new Date(t * 1000).toLocaleTimeString('en-GB');

class Chart {
  constructor(id, lines, format) {
    this.box = document.getElementById(id);
    this.lines = lines;
    this.format = format;
    this.data = [[], ...lines.map(() => [])];
    this.build();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.box);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { this.plot.destroy(); this.build(); });
  }

  size() { return { width: Math.max(this.box.clientWidth, 100), height: 160 }; }

  build() {
    const axis = { stroke: colour('dim'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false }, font: '12px system-ui' };
    this.plot = new uPlot({
      ...this.size(),
      cursor: { points: { size: 6 }, drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
      axes: [{ ...axis, size: 26, space: 90, values: (_, times) => times.map(clock) }, { ...axis, size: 62, values: (_, ticks) => ticks.map(this.format) }],
      series: [{ label: 'second', value: (_, t) => t === null ? '–' : clock(t) }, ...this.lines.map(l => ({
        label: l.label, stroke: colour(l.colour), width: 1.5, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }),
        fill: l.fill ? colour(l.colour) + '22' : undefined, value: (_, v) => this.format(v), spanGaps: false,
      }))],
    }, this.data, this.box);
  }

  show(data) {
    this.data = data;
    this.plot.setData(data);
  }
}

// spark draws a little line into a canvas.
function spark(canvas, values) {
  const ratio = devicePixelRatio || 1, w = 120, h = 22;
  if (canvas.width !== w * ratio) {
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    canvas.style.width = w + 'px';
    canvas.style.height = h + 'px';
  }
  const c = canvas.getContext('2d');
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, w, h);
  const top = Math.max(1, ...values), step = w / 60, left = w - values.length * step;
  c.fillStyle = colour('pass');
  values.forEach((v, i) => {
    const tall = v / top * (h - 2);
    if (v > 0) c.fillRect(left + i * step, h - Math.max(tall, 1), Math.max(step - .4, .6), Math.max(tall, 1));
  });
}
