// The service's own client and libraries, for comparison. Prints one line of JSON.
//
//   proof <space key Mg...> <audience did>          a delegation as the official tools make it
//   parse <proof>                                   what the official tools read out of a delegation
//   list <url> <did> <key> <proof>                  upload/list by the official client
//   read <url> <did> <key> <proof> <root>           the tree of a root, as a gateway finds it: through claims and indexes
//   upload <url> <did> <key> <proof>                upload a file by the official client
import { CarReader } from '@ipld/car'
import * as dagPB from '@ipld/dag-pb'
import * as Client from '@storacha/client'
import * as Proof from '@storacha/client/proof'
import * as Signer from '@storacha/client/principal/ed25519'
import { StoreMemory } from '@storacha/client/stores/memory'
import { ShardedDAGIndex } from '@storacha/blob-index'
import { CAR, HTTP } from '@ucanto/transport'
import { connect } from '@ucanto/client'
import { CAR as CARCodec, Delegation, DID } from '@ucanto/core'
import { base64 } from 'multiformats/bases/base64'
import { CID } from 'multiformats/cid'
import { identity } from 'multiformats/hashes/identity'
import { sha256 } from 'multiformats/hashes/sha2'

const print = (value) => console.log(JSON.stringify(value))
const [, , command, ...args] = process.argv

const open = async (url, did, key, proof) => {
  const connection = connect({
    id: DID.parse(did), codec: CAR.outbound, channel: HTTP.open({ url: new URL(url), method: 'POST' }),
  })
  const client = await Client.create({
    principal: Signer.parse(key),
    store: new StoreMemory(),
    serviceConf: { access: connection, upload: connection, filecoin: connection, gateway: connection },
    receiptsEndpoint: new URL('/receipt/', url),
  })
  const space = await client.addSpace(await Proof.parse(proof))
  await client.setCurrentSpace(space.did())
  return client
}

const claims = async (url, cid) => (await fetch(`${url}/_test/claims/${cid}`)).json()

const blob = async (url, cid) => {
  const where = (await claims(url, cid)).find((claim) => claim.type === 'assert/location')
  const bytes = new Uint8Array(await (await fetch(where.location)).arrayBuffer())
  const digest = await sha256.digest(bytes)
  if (!CID.createV1(cid.code, digest).equals(cid)) throw new Error(`${cid} is another blob`)
  return bytes
}

const uploads = async (client) => {
  const found = []
  let cursor
  for (;;) {
    const page = await client.capability.upload.list({ cursor, size: 7 })
    found.push(...page.results)
    if (!page.cursor || page.results.length === 0) return found
    cursor = page.cursor
  }
}

if (command === 'proof') {
  const [key, audience] = args
  const space = Signer.parse(key)
  const delegation = await Delegation.delegate({
    issuer: space,
    audience: DID.parse(audience),
    capabilities: ['space/*', 'upload/*'].map((can) => ({ can, with: space.did() })),
    expiration: Math.floor(Date.now() / 1000) + 86400,
    facts: [{ note: 'héllo', bytes: new Uint8Array([1, 2]) }],
  })
  const archive = (await delegation.archive()).ok
  print(CID.createV1(CARCodec.code, identity.digest(archive)).toString(base64))
} else if (command === 'parse') {
  const delegation = await Proof.parse(args[0])
  print({
    issuer: delegation.issuer.did(), audience: delegation.audience.did(), expiration: delegation.expiration,
    capabilities: delegation.capabilities,
  })
} else if (command === 'list') {
  const client = await open(...args)
  print((await uploads(client)).map(({ root, shards }) => ({ root: `${root}`, shards: (shards ?? []).map(String) })))
} else if (command === 'upload') {
  const client = await open(...args)
  print(`${await client.uploadFile(new Blob(['somebody else wrote this']))}`)
} else if (command === 'read') {
  const [url, , , , text] = args
  const root = CID.parse(text)
  const client = await open(...args.slice(0, 4))
  // The index claim of the root leads to an index; blocks of older roots are found through theirs.
  if (!(await claims(url, root)).some((claim) => claim.type === 'assert/index')) throw new Error('no index claim')
  const blocks = new Map()
  for (const upload of await uploads(client)) {
    for (const claim of await claims(url, upload.root)) {
      if (claim.type !== 'assert/index') continue
      const index = ShardedDAGIndex.extract(await blob(url, CID.parse(claim.index)))
      if (index.error) throw index.error
      if (!index.ok.content.equals(upload.root)) throw new Error('an index of another root')
      for (const [shard, slices] of index.ok.shards) {
        const car = await blob(url, CID.createV1(0x0202, shard))
        const sections = new Set()
        for await (const section of (await CarReader.fromBytes(car)).blocks()) sections.add(`${section.cid}`)
        for (const [digest, [offset, length]] of slices) {
          const bytes = car.subarray(offset, offset + length)
          const same = await sha256.digest(bytes)
          if (Buffer.compare(Buffer.from(same.bytes), Buffer.from(digest.bytes))) throw new Error('a slice is off')
          for (const codec of [0x55, 0x70]) {
            const cid = CID.createV1(codec, same)
            if (sections.has(`${cid}`)) blocks.set(`${cid}`, bytes)
          }
        }
      }
    }
  }
  const seen = {}
  const walk = (cid) => {
    if (`${cid}` in seen) return
    const bytes = blocks.get(`${cid}`)
    if (!bytes) throw new Error(`${cid} is nowhere`)
    seen[`${cid}`] = bytes.length
    if (cid.code === 0x70) for (const link of dagPB.decode(bytes).Links) walk(link.Hash)
  }
  walk(root)
  print(seen)
}
