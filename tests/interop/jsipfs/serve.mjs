/* A js-ipfs node with an RPC port on loopback and no network: node --import ./polyfill.mjs serve.mjs <repo> <port>. Prints its URL. */
import { create } from 'ipfs-core'
import { HttpApi } from 'ipfs-http-server'

const [repo, port] = process.argv.slice(2)
const ipfs = await create({
  repo,
  offline: true,
  start: true,
  silent: true,
  preload: { enabled: false },
  init: { emptyRepo: true, algorithm: 'Ed25519' },
  config: {
    Bootstrap: [],
    Discovery: { MDNS: { Enabled: false }, webRTCStar: { Enabled: false } },
    Addresses: { Swarm: [], API: `/ip4/127.0.0.1/tcp/${port}`, Gateway: '', Delegates: [], Preload: [] }
  }
})
const api = new HttpApi(ipfs)
await api.start()
process.on('SIGTERM', () => process.exit(0))
console.log(`http://127.0.0.1:${port}`)
