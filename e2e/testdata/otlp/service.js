// A service that traces with OpenTelemetry's SDK, and counts its calls itself: it prints the starts and ends of each second, by name.
// It sends its spans as JSON over HTTP to the address in the environment, and as protobuf and by gRPC to the addresses in its arguments.
const { BasicTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-base')
const { resourceFromAttributes } = require('@opentelemetry/resources')
const json = require('@opentelemetry/exporter-trace-otlp-http')
const proto = require('@opentelemetry/exporter-trace-otlp-proto')
const grpc = require('@opentelemetry/exporter-trace-otlp-grpc')

const [toProtobuf, toGRPC] = process.argv.slice(2)
const counted = {}
const count = (name, what, [second]) => {
  const key = [name, what, second].join('|')
  counted[key] = (counted[key] || 0) + 1
}
const inProcess = {
  onStart() {},
  onEnd(span) {
    const a = span.attributes
    const direction = { [client]: 'outbound', [producer]: 'outbound', [consumer]: 'inbound' }[span.kind]
    const name = a['http.route'] ? `${a['http.request.method']} ${a['http.route']}` : `${direction} ${span.name}`
    count(name, 'pass', span.startTime)
    count(name, 'complete', span.endTime)
    if (span.status.code === 2) count(name, 'exception', span.endTime)
  },
  forceFlush: async () => {},
  shutdown: async () => {},
}
const batch = exporter => new BatchSpanProcessor(exporter, { scheduledDelayMillis: 1000 })
const provider = new BasicTracerProvider({
  resource: resourceFromAttributes({ 'service.name': process.env.OTEL_SERVICE_NAME }),
  spanProcessors: [
    inProcess,
    batch(new json.OTLPTraceExporter({ compression: 'gzip' })),
    batch(new proto.OTLPTraceExporter({ url: `http://${toProtobuf}/v1/traces` })),
    batch(new grpc.OTLPTraceExporter({ url: `http://${toGRPC}` })),
  ],
})
const tracer = provider.getTracer('shop')
const sleep = ms => new Promise(done => setTimeout(done, ms))
const [internal, server, client, producer, consumer] = [0, 1, 2, 3, 4]

async function call(i) {
  const span = tracer.startSpan('GET', {
    kind: server,
    attributes: { 'http.request.method': 'GET', 'http.route': `/users/:id/${i % 3}`, 'url.path': `/users/${i}/${i % 3}` },
  })
  const outbound = tracer.startSpan('send mail', { kind: i % 2 ? client : producer })
  const inner = tracer.startSpan('parse', { kind: internal })
  await sleep(i % 50 === 0 ? 1500 : Math.random() * 40)
  inner.end()
  outbound.end()
  if (i % 7 === 0) span.setStatus({ code: 2 })
  span.setAttribute('http.response.status_code', i % 7 ? 200 : 500)
  span.end()
  tracer.startSpan('process mail', { kind: consumer }).end()
}

async function main() {
  const calls = []
  for (const end = Date.now() + 8000, i = { n: 0 }; Date.now() < end; await sleep(10)) calls.push(call(i.n++))
  await Promise.all(calls)
  await provider.shutdown()
  for (const key of Object.keys(counted)) if (key.startsWith('undefined ')) delete counted[key] // internal
  console.log(JSON.stringify(counted))
}
main()
