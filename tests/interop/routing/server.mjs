// Helia's delegated routing server over a map: real handlers and real IPNS validation, no network. Prints its URL.
import { createDelegatedRoutingV1HttpApiServer } from '@helia/delegated-routing-v1-http-api-server'

const values = new Map()
const text = (key) => Buffer.from(key).toString('hex')
const routing = {
  async put (key, value) { values.set(text(key), value) },
  async get (key) {
    const value = values.get(text(key))
    if (value === undefined) {
      throw Object.assign(new Error('not found'), { name: 'NotFoundError', code: 'ERR_NOT_FOUND' })
    }
    return value
  },
  async * findProviders () {},
  async findPeer () { throw Object.assign(new Error('not found'), { name: 'NotFoundError', code: 'ERR_NOT_FOUND' }) }
}
const server = await createDelegatedRoutingV1HttpApiServer({ routing }, { listen: { host: '127.0.0.1', port: 0 } })
console.log(`http://127.0.0.1:${server.server.address().port}`)
