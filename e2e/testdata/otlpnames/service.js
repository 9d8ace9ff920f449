// A service of some framework that OpenTelemetry's automatic instrumentation traces. It calls itself: once each kind of
// request that names differ by. The first argument is the framework.
const http = require('http')

const frameworks = {
  async http() {
    const server = http.createServer((request, response) => {
      response.statusCode = request.url === '/nowhere' ? 404 : 200
      response.end('ok')
    })
    await new Promise(done => server.listen(0, '127.0.0.1', done))
    return server.address().port
  },
  async express() {
    const express = require('express')
    const app = express()
    const router = express.Router()
    router.get('/:id', (_, response) => response.send('ok'))
    app.use('/users', router)
    app.post('/cart', (_, response) => response.send('ok'))
    const server = await new Promise(done => { const s = app.listen(0, '127.0.0.1', () => done(s)) })
    return server.address().port
  },
  async fastify() {
    const app = require('fastify')()
    app.get('/users/:id', async () => 'ok')
    app.post('/cart', async () => 'ok')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return app.server.address().port
  },
}

async function main() {
  const port = await frameworks[process.argv[2]]()
  const call = (method, path) => new Promise(done => {
    const request = http.request(`http://localhost:${port}${path}`, { method }, response => response.resume().on('end', done))
    request.end()
  })
  await call('GET', '/users/7')
  await call('POST', '/cart')
  await call('GET', '/nowhere')
  await (await fetch(`http://127.0.0.1:${port}/users/8`)).text()
  setTimeout(() => process.exit(0), 2500) // the last batch is sent
}
main()
