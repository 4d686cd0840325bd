/* mock-ipfs-pinning-service on a free port of loopback (its own program listens everywhere): node mock.mjs <token>. */
import http from 'node:http'
import { createRequire } from 'node:module'

const { setup } = createRequire(import.meta.url)('mock-ipfs-pinning-service')
const server = http.createServer(await setup({ token: process.argv[2], loglevel: 'error' }))
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
