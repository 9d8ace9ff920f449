// Registers the automatic instrumentation, and Fastify's own, which sets the routes of Fastify.
const { NodeSDK } = require('@opentelemetry/sdk-node')
const { getNodeAutoInstrumentations } = require('@opentelemetry/auto-instrumentations-node')
const { FastifyOtelInstrumentation } = require('@fastify/otel')

new NodeSDK({
  instrumentations: [getNodeAutoInstrumentations(), new FastifyOtelInstrumentation({ registerOnInitialization: true })],
}).start()
