'use strict';

// Charts with a point for each second, the small charts of the table, and the formats of numbers.

// cssColor returns the value of a color variable in app.css.
const cssColor = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// formatDuration formats microseconds with three digits and the largest suitable unit.
function formatDuration(us) {
  if (us === null || us === undefined) return '–';
  if (us < 1) return '< 1 µs';
  // 999.5 µs would be rounded to 1000 µs, so it is 1 ms.
  const unit = us >= 999500 ? [1e6, ' s'] : us >= 999.5 ? [1e3, ' ms'] : [1, ' µs'];
  return Number((us / unit[0]).toPrecision(3)) + unit[1];
}

// formatCount formats a whole number with thousands separators.
const formatCount = n => n === null || n === undefined ? '–' : n.toLocaleString('en');

// formatCalls formats a number of calls in flight, or of processors, which may be a fraction.
function formatCalls(n) {
  if (n === null || n === undefined) return '–';
  return n > 0 && n < .001 ? '< 0.001' : Number(n.toPrecision(3)).toLocaleString('en');
}

// formatBytes formats bytes with three digits and a binary unit.
function formatBytes(n) {
  if (n === null || n === undefined) return '–';
  const k = n < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(n) / 10));
  return Number((n / 1024 ** k).toPrecision(3)) + [' B', ' KiB', ' MiB', ' GiB', ' TiB'][k];
}

// formatTime formats Unix time: in the zone of a recording, or in the zone of the browser.
function formatTime(t) {
  if (RECORDED) return new Date((t + recording.offset) * 1000).toISOString().slice(11, 19);
  return new Date(t * 1000).toLocaleTimeString('en-GB');
}

// formatRange formats the seconds from first up to, but not including, end.
const formatRange = ([first, end]) =>
  formatCount(end - first) + ' seconds, ' + formatTime(first) + ' to ' + formatTime(end - 1);

// Allowed distances between the ticks of an axis: of whole numbers, of bytes, and of seconds.
const integerTicks = [...Array(16).keys()].flatMap(k => [1, 2, 5].map(n => n * 10 ** k));
const byteTicks = [...Array(45).keys()].map(k => 2 ** k);
const timeTicks = [1, 5, 10, 15, 30, 60, 120, 180, 300, 600];

// chartRange returns the first second of the charts and the one after their last: the zoomed range, or the last minutes
// up to the second last. If last is null, no second is known yet, and the charts end with the current time.
function chartRange(last) {
  if (view.zoom) return view.zoom;
  const end = (last === null ? Math.floor(Date.now() / 1000) : last) + 1;
  return [end - view.minutes * 60, end];
}

// stepPaths returns a uPlot path builder that draws each second as a horizontal step, which makes a single second
// visible. A missing second is a gap. A line without a filled area is also interrupted at 0, where it would hide other
// lines.
const stepPaths = filled => (u, number, from, to) => {
  const values = u.data[number], x = t => u.valToPos(t, 'x', true), y = v => u.valToPos(v, 'y', true);
  const stroke = new Path2D(), fill = filled ? new Path2D() : null;
  let drawing = false;
  for (let i = from; i <= to; i++) {
    const v = values[i], left = x(u.data[0][i]), right = x(u.data[0][i] + 1);
    if (v === null || v === 0 && !filled) {
      if (drawing && v === 0) stroke.lineTo(left, y(0)); // down to the axis
      drawing = false;
      continue;
    }
    if (!drawing) stroke.moveTo(left, y(values[i - 1] === 0 ? 0 : v));
    stroke.lineTo(left, y(v));
    stroke.lineTo(right, y(v));
    if (filled) fill.rect(left, y(v), right - left, y(0) - y(v));
    drawing = true;
  }
  return { stroke, fill, clip: null, band: null, gaps: null, flags: 0 };
};

// A Chart draws lines over the seconds of chartRange. All charts share one cursor, see setCursor. Options of a line:
//   label, color   name in the legend, and CSS variable
//   fill           fills the area below the line
//   optional       hides the line if it has no values, because the machine does not provide them
// Options of a chart:
//   height         in pixels
//   minTop         smallest value at the top of the y axis
//   incrs          distances between ticks; undefined for the default of uPlot
class Chart {
  constructor(id, lines, format, options) {
    this.box = document.getElementById(id);
    Object.assign(this, { lines, format, limit: null, height: 160, minTop: 1, incrs: integerTicks }, options);
    this.data = [[], ...lines.map(() => [])];
    this.build();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.box);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { this.plot.destroy(); this.build(); });
  }

  size() { return { width: Math.max(this.box.clientWidth, 100), height: this.height }; }

  // build creates the plot with the current colors.
  build() {
    const axis = {
      stroke: cssColor('dim'), grid: { stroke: cssColor('line'), width: 1 }, ticks: { show: false },
      font: '12px system-ui',
    };
    const line = (l, i) => ({
      label: l.label, show: this.hasLine(l, i), stroke: cssColor(l.color), width: 1.5, points: { show: false },
      paths: stepPaths(l.fill), fill: l.fill ? cssColor(l.color) + '22' : undefined,
      value: (_, v, __, i) => i === null ? '' : this.format(v), // without a cursor, the legend has no values
    });
    this.plot = new uPlot({
      ...this.size(),
      padding: [null, 28, null, null], // space for the right half of the last label on the x axis
      cursor: {
        y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: false, dist: 5 },
        bind: { dblclick: () => () => { if (view.zoom) zoom(); } },
        dataIdx: (u, _, i, x) => { // the second at x, not the nearest point
          const times = u.data[0];
          return times.length ? Math.min(Math.max(Math.floor(x) - times[0], 0), times.length - 1) : i;
        },
      },
      hooks: { setSelect: [u => this.zoomToSelection(u)], draw: [u => this.drawOverlay(u)] },
      scales: {
        x: { range: (_, first, last) => chartRange(last) },
        y: { range: (_, low, high) => [0, Math.max(1.1 * high, 1.25 * this.visibleLimit(high), this.minTop)] },
      },
      axes: [
        { ...axis, size: 30, gap: 9, space: 60, incrs: timeTicks, values: (_, times) => times.map(formatTime) },
        {
          ...axis, size: 62, space: 22, incrs: this.incrs,
          values: (_, ticks) => ticks.map(n => n === 0 ? '0' : this.format(n)),
        },
      ],
      series: [{ label: 'second', value: (_, t) => t === null ? '–' : formatTime(t) }, ...this.lines.map(line)],
    }, this.data, this.box);
    const over = this.plot.over;
    over.addEventListener('pointermove', e => setCursor(Math.floor(this.plot.posToVal(e.offsetX, 'x'))));
    over.addEventListener('pointerleave', () => setCursor(null));
  }

  // visibleLimit returns the limit, or 0 if the limit is so high that it would flatten the lines.
  visibleLimit(high) {
    return this.limit !== null && this.limit <= 5 * Math.max(high, this.minTop) ? this.limit : 0;
  }

  // drawOverlay draws the limit, and a note over the range before the first second.
  drawOverlay(u) {
    const { left, top, width, height } = u.bbox, c = u.ctx, ratio = devicePixelRatio || 1;
    c.save();
    c.font = 12 * ratio + 'px system-ui';
    if (this.limit !== null && this.limit < u.scales.y.max) {
      const y = u.valToPos(this.limit, 'y', true);
      c.strokeStyle = c.fillStyle = cssColor('bad');
      c.lineWidth = ratio;
      c.setLineDash([6 * ratio, 4 * ratio]);
      c.beginPath();
      c.moveTo(left, y);
      c.lineTo(left + width, y);
      c.stroke();
      c.textAlign = 'right';
      // An outline in the background color keeps the label readable over lines.
      Object.assign(c, { strokeStyle: cssColor('panel'), lineWidth: 4 * ratio });
      c.setLineDash([]);
      c.strokeText('limit', left + width - 2 * ratio, y - 4 * ratio);
      c.fillText('limit', left + width - 2 * ratio, y - 4 * ratio);
    }
    const times = u.data[0];
    const first = times.length ? Math.min(Math.max(u.valToPos(times[0], 'x', true), left), left + width) : left;
    const text = times.length ? 'nothing before ' + formatTime(times[0]) : '';
    if (first - left > c.measureText(text).width + 8 * ratio) {
      c.fillStyle = cssColor('dim');
      c.textAlign = 'center';
      c.fillText(text, (left + first) / 2, top + height / 2);
    }
    c.restore();
  }

  // moveCursor moves the cursor to a second, or hides it if at is null. It computes the position from chartRange,
  // because a chart without data has no scale.
  moveCursor(at) {
    const [first, end] = chartRange(lastShown());
    const left = at === null ? -10 : (at + .5 - first) / (end - first) * this.plot.over.clientWidth;
    this.plot.setCursor({ left, top: at === null ? -10 : 1 });
  }

  // zoomToSelection zooms to the whole seconds that the user has dragged over.
  zoomToSelection(u) {
    const { left, width } = u.select;
    if (!width) return;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    zoom(Math.round(u.posToVal(left, 'x')), Math.round(u.posToVal(left + width, 'x')));
  }

  // hasLine reports whether line l with index i is shown.
  hasLine(l, i) { return !l.optional || this.data[i + 1].some(v => v !== null); }

  // show replaces the data: the times, then the values of each line.
  show(data) {
    this.data = data;
    this.lines.forEach((l, i) => {
      const show = this.hasLine(l, i);
      if (this.plot.series[i + 1].show !== show) this.plot.setSeries(i + 1, { show }, false);
    });
    this.plot.setData(data);
  }
}

// drawSparkline draws values as the last bars of a chart with length bars. The top of the chart is the highest value,
// or top if it is not 0.
function drawSparkline(canvas, values, length, top) {
  // The canvas has the resolution of the screen; the drawing uses CSS pixels.
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
  c.fillStyle = cssColor('pass');
  values.forEach((v, i) => {
    const tall = v / high * (h - 2); // at least a pixel, so that a single call is visible
    if (v > 0) c.fillRect(left + i * step, h - Math.max(tall, 1), Math.max(step - .4, .6), Math.max(tall, 1));
  });
}
