// ipns-verify.mjs NAME RECORDFILE: validate a record with the JavaScript library; value, sequence, validity, TTL in ns.
import { readFile } from 'node:fs/promises'
import { multihashToIPNSRoutingKey, unmarshalIPNSRecord } from 'ipns'
import { ipnsValidator } from 'ipns/validator'
import { base36 } from 'multiformats/bases/base36'
import { CID } from 'multiformats/cid'

const [name, file] = process.argv.slice(2)
const data = await readFile(file)
await ipnsValidator(multihashToIPNSRoutingKey(CID.parse(name, base36).multihash), data)
const record = unmarshalIPNSRecord(data)
console.log(record.value, String(record.sequence), record.validity, String(record.ttl))
