// Reads every case of fixtures/vectors/vaults.json with nothing but its key; one line of JSON for each, as in `expect`.

import { readFileSync } from 'node:fs'
import { Refused, canonical, fromB64, fromHex, hex } from './bytes.mjs'
import { Blocks, readCar } from './content.mjs'
import { keysOfSecret, keysOfWallet, keysOfWords } from './keys.mjs'
import { Reader } from './vault.mjs'

const { cars, cases } = JSON.parse(readFileSync(process.argv[2], 'utf8'))

function read(one) {
  const blocks = new Blocks()
  readCar(fromB64(cars[one.car]), blocks)
  for (const cid of one.without) blocks.held.delete(cid)
  for (const [cid, data] of Object.entries(one.instead)) blocks.add(cid, fromB64(data))
  const { wallet, words, secret } = one.opened_by
  const reader = new Reader({
    keys: wallet ? keysOfWallet(wallet) : words ? keysOfWords(words) : keysOfSecret(fromHex(secret, 64), '00'.repeat(20), 'default', 1),
    plain: one.kind === 'plain',
    blocks,
    names: Object.fromEntries(Object.entries(one.names).map(([name, record]) => [name, fromB64(record)])),
    pins: one.pins
  })
  const { ring, digest, root, layout, verdicts, scopes, memories, events } = reader.read()
  const members = [...ring.said.members.values()].map(({ id, label, role }) => [id, { label, person: ring.said.persons.get(id) ?? null, role }])
  return {
    by_rule: root === null ? null : layout,
    digest,
    events,
    heads: verdicts,
    members: Object.fromEntries(members),
    memories,
    root,
    scopes: Object.fromEntries(Object.entries(scopes).map(([token, { card }]) => [token, card])),
    vault: hex(ring.tag)
  }
}

for (const one of cases) {
  let said
  try {
    said = read(one)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    said = { refused: error.kind }
  }
  console.log(canonical({ name: one.name, said }))
}
