// Reads ipfs:// and ipns:// URLs through a gateway and a routing server, verifying every block; prints status, length and SHA-256 of each.
import { createHash } from 'node:crypto'
import { withHTTP } from '@helia/http'
import { createVerifiedFetch } from '@helia/verified-fetch'
import { createHeliaLight } from 'helia'

const [gateway, ...urls] = process.argv.slice(2)
const helia = await withHTTP(createHeliaLight({}), {
  recursiveGateways: [gateway],
  delegatedRouters: [gateway],
  allowInsecure: true,
  allowLocal: true
}).start()
const fetch = await createVerifiedFetch(helia)
for (const url of urls) {
  const response = await fetch(url)
  const body = Buffer.from(await response.arrayBuffer())
  console.log(response.status, body.length, createHash('sha256').update(body).digest('hex'))
}
process.exit(0)
