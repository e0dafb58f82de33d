// Servers that return each request as it reached them, on ports of their own and on sockets in a folder. A query has what
// they respond with: `?reply-status=404&reply-location=/x`.
const crypto = require('crypto')
const http = require('http')

const [count, folder] = process.argv.slice(1)
const ports = []

const described = (number, request, bytes) => {
  const fields = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`).sort()
  return [`server ${number}`, `${request.method} ${request.url}`, ...fields, `${bytes} bytes`].join('\n')
}

const wanted = request => {
  const reply = { status: 200, fields: {} }
  for (const [name, value] of new URLSearchParams(request.url.split('?')[1])) {
    if (name === 'reply-status') reply.status = Number(value)
    else if (name.startsWith('reply-')) reply.fields[name.slice('reply-'.length)] = value
  }
  return reply
}

const start = (number, place, listening) => {
  // Responses without content, such as those to HEAD, say in a field what reached the server.
  const received = request => ({ 'x-received': `${number} ${request.method} ${request.url}` })
  const server = http.createServer((request, response) => {
    let bytes = 0
    request.on('data', data => { bytes += data.length })
    request.on('end', () => {
      const { status, fields } = wanted(request)
      const usual = { 'content-type': 'text/plain', 'x-powered-by': 'node', 'content-disposition': 'inline' }
      response.writeHead(status, { ...usual, ...received(request), ...fields })
      response.end(described(number, request, bytes))
    })
  })
  server.on('upgrade', (request, socket) => {
    const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
    const accept = crypto.createHash('sha1').update(key).digest('base64')
    const upgrade = { connection: 'upgrade', upgrade: request.headers.upgrade, 'sec-websocket-accept': accept }
    const fields = { ...upgrade, ...received(request) }
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`).join('')
    socket.end(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n${described(number, request, 0)}`)
  })
  server.listen(place, () => listening(server.address()))
}

for (let number = 0; number < Number(count); number++) {
  start(number, `${folder}/${number}.sock`, () => {
    start(number, { port: 0, host: '127.0.0.1' }, address => {
      ports[number] = address.port
      if (ports.filter(Boolean).length === Number(count)) console.log(JSON.stringify(ports))
    })
  })
}
