'use strict';

// Charts of the last seconds: one point for each.
const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// duration writes microseconds as people say them, to three digits.
function duration(us) {
  if (us === null || us === undefined) return '–';
  const unit = us >= 999500 ? [1e6, ' s'] : us >= 999.5 ? [1e3, ' ms'] : [1, ' µs'];
  return Number((us / unit[0]).toPrecision(3)) + unit[1];
}

const count = n => n === null || n === undefined ? '–' : n.toLocaleString('en');
const calls = n => n === null || n === undefined ? '–' : n > 0 && n < .001 ? '< 0.001' : Number(n.toPrecision(3)).toLocaleString('en');

// wholes are what ticks may be apart where there is no half, as of calls.
const wholes = [...Array(16).keys()].flatMap(k => [1, 2, 5].map(n => n * 10 ** k));

const bytes = n => {
  if (n === null || n === undefined) return '–';
  const k = n < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(n) / 10));
  return Number((n / 1024 ** k).toPrecision(3)) + [' B', ' KiB', ' MiB', ' GiB', ' TiB'][k];
};
const times = [1, 5, 10, 15, 30, 60, 120, 180, 300, 600]; // and seconds
const powers = [...Array(45).keys()].map(k => 2 ** k); // what ticks of bytes may be apart

const clock = t => RECORDED ? new Date((t + recording.offset) * 1000).toISOString().slice(11, 19) : new Date(t * 1000).toLocaleTimeString('en-GB');
const from = ([first, end]) => count(end - first) + ' seconds, ' + clock(first) + ' to ' + clock(end - 1);

// span is how much time a chart shows, to the end of the last second, or where it is zoomed to.
function span(last) {
  if (view.zoom) return view.zoom;
  const end = (last === null ? Math.floor(Date.now() / 1000) : last) + 1;
  return [end - view.range * 60, end];
}

// steps draws each second as long as it lasts, so that one that is alone can be seen. Where nothing is known there is
// nothing; nor has a line without an area one where it is 0, or it would hide the others.
const steps = area => (u, number, from, to) => {
  const values = u.data[number], x = t => u.valToPos(t, 'x', true), y = v => u.valToPos(v, 'y', true);
  const stroke = new Path2D(), fill = area ? new Path2D() : null;
  let drawing = false;
  for (let i = from; i <= to; i++) {
    const v = values[i], left = x(u.data[0][i]), right = x(u.data[0][i] + 1);
    if (v === null || v === 0 && !area) {
      if (drawing && v === 0) stroke.lineTo(left, y(0));
      drawing = false;
      continue;
    }
    if (!drawing) stroke.moveTo(left, y(values[i - 1] === 0 ? 0 : v));
    stroke.lineTo(left, y(v));
    stroke.lineTo(right, y(v));
    if (area) fill.rect(left, y(v), right - left, y(0) - y(v));
    drawing = true;
  }
  return { stroke, fill, clip: null, band: null, gaps: null, flags: 0 };
};

// A Chart has the cursor of all charts: the second that it is over, see [pointTo].
class Chart {
  constructor(id, lines, format, options) {
    this.box = document.getElementById(id);
    Object.assign(this, { lines, format, limit: null, height: 160, least: 1, incrs: wholes }, options);
    this.data = [[], ...lines.map(() => [])];
    this.build();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.box);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { this.plot.destroy(); this.build(); });
  }

  size() { return { width: Math.max(this.box.clientWidth, 100), height: this.height }; }

  build() {
    const axis = { stroke: colour('dim'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false }, font: '12px system-ui' };
    this.plot = new uPlot({
      ...this.size(),
      padding: [null, 28, null, null], // half of a time is behind the last line
      cursor: {
        y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: false, dist: 5 }, bind: { dblclick: () => () => { if (view.zoom) zoom(); } },
        dataIdx: (u, _, i, x) => u.data[0].length ? Math.min(Math.max(Math.floor(x) - u.data[0][0], 0), u.data[0].length - 1) : i,
      },
      hooks: { setSelect: [u => this.selected(u)], draw: [u => this.more(u)] },
      scales: {
        x: { range: (_, first, last) => span(last) },
        y: { range: (_, low, high) => [0, Math.max(1.1 * high, 1.25 * this.shownLimit(high), this.least)] },
      },
      axes: [{ ...axis, size: 30, gap: 9, space: 60, incrs: times, values: (_, times) => times.map(clock) }, { ...axis, size: 62, incrs: this.incrs, values: (_, ticks) => ticks.map(this.format) }],
      series: [{ label: 'second', value: (_, t) => t === null ? '–' : clock(t) }, ...this.lines.map((l, i) => ({
        label: l.label, show: this.has(l, i), stroke: colour(l.colour), width: 1.5, points: { show: false }, paths: steps(l.fill),
        fill: l.fill ? colour(l.colour) + '22' : undefined, value: (_, v) => (l.format || this.format)(v),
      }))],
    }, this.data, this.box);
    this.plot.over.addEventListener('pointermove', e => pointTo(Math.floor(this.plot.posToVal(e.offsetX, 'x'))));
    this.plot.over.addEventListener('pointerleave', () => pointTo(null));
  }

  // shownLimit is the limit, or 0 if it is so high that nothing else could be seen.
  shownLimit(high) { return this.limit !== null && this.limit <= 5 * Math.max(high, this.least) ? this.limit : 0; }

  // more draws the limit, and says where nothing is kept.
  more(u) {
    const { left, top, width, height } = u.bbox, c = u.ctx, ratio = devicePixelRatio || 1;
    c.save();
    c.font = 12 * ratio + 'px system-ui';
    if (this.limit !== null && this.limit < u.scales.y.max) {
      const y = u.valToPos(this.limit, 'y', true);
      c.strokeStyle = c.fillStyle = colour('bad');
      c.lineWidth = ratio;
      c.setLineDash([6 * ratio, 4 * ratio]);
      c.beginPath();
      c.moveTo(left, y);
      c.lineTo(left + width, y);
      c.stroke();
      c.textAlign = 'right';
      Object.assign(c, { strokeStyle: colour('panel'), lineWidth: 4 * ratio });
      c.setLineDash([]);
      c.strokeText('limit', left + width - 2 * ratio, y - 4 * ratio); // or what is behind it makes it hard to read
      c.fillText('limit', left + width - 2 * ratio, y - 4 * ratio);
    }
    const first = u.data[0].length ? Math.min(Math.max(u.valToPos(u.data[0][0], 'x', true), left), left + width) : left;
    const text = u.data[0].length ? 'nothing before ' + clock(u.data[0][0]) : '';
    if (first - left > c.measureText(text).width + 8 * ratio) {
      c.fillStyle = colour('dim');
      c.textAlign = 'center';
      c.fillText(text, (left + first) / 2, top + height / 2);
    }
    c.restore();
  }

  // point puts the cursor to a second, null for none.
  point(at) {
    const [first, end] = span(lastShown()); // a chart that had no data has no scale yet
    this.plot.setCursor(at === null ? { left: -10, top: -10 } : { left: (at + .5 - first) / (end - first) * this.plot.over.clientWidth, top: 1 });
  }

  // selected zooms to whole seconds that somebody has dragged over.
  selected(u) {
    const { left, width } = u.select;
    if (!width) return;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    zoom(Math.round(u.posToVal(left, 'x')), Math.round(u.posToVal(left + width, 'x')));
  }

  // has reports whether there is a line: one that a machine may not have is not shown without a value.
  has(l, i) { return !l.may || this.data[i + 1].some(v => v !== null); }

  show(data) {
    this.data = data;
    this.lines.forEach((l, i) => { if (this.plot.series[i + 1].show !== this.has(l, i)) this.plot.setSeries(i + 1, { show: this.has(l, i) }, false); });
    this.plot.setData(data);
  }
}

// spark draws a little line of up to some seconds into a canvas, as high as its highest value, or as top if that is given.
function spark(canvas, values, length, top) {
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
  const high = top || Math.max(1, ...values), step = w / length, left = w - values.length * step;
  c.fillStyle = colour('pass');
  values.forEach((v, i) => {
    const tall = v / high * (h - 2);
    if (v > 0) c.fillRect(left + i * step, h - Math.max(tall, 1), Math.max(step - .4, .6), Math.max(tall, 1));
  });
}
