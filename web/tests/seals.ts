/** Keys and sealed objects (FORMAT.md 2 and 3). */

import { type Bytes, fromHex, hex, sha256, unlessRefused, utf8 } from '../src/core/bytes.ts'
import { boxPublic, isBoxKey, isSigningKey, openBox, sealBox, sign, signingPublic, verify } from '../src/core/curves.ts'
import { inflate } from '../src/core/inflate.ts'
import { MOST_FILE } from '../src/core/limits.ts'
import { EpochKey, MOST_PAYLOAD, pad } from '../src/core/sealed.ts'
import * as wallet from '../src/core/wallet.ts'
import type { Judge, Rows } from './judging.ts'

export const walletJudge: Judge = (all, court) => {
  for (const row of all.key_requests) {
    const text = wallet.keyRequest(row.address, row.vault, row.key_number)
    court.same([text, hex(sha256(text)), hex(wallet.signingHash(text))], [row.text, row.sha256, row.eip191_keccak256], row.address)
  }
  for (const row of all.refused_requests) court.refuses(() => wallet.keyRequest('0'.repeat(40), row.vault, row.key_number), `${row.vault} ${row.key_number}`)
  const accepted = (row: Rows) => wallet.acceptedSignature(row.address, row.text, wallet.signatureBytes(row.signature))
  for (const row of all.accepted) court.same(hex(accepted(row)), row.rs, row.name)
  for (const row of all.refused) court.refuses(() => accepted(row), row.name, 'signature')
  const { address, text } = all.accepted[0]
  for (const row of all.signed_twice) {
    const [first, second] = row.answers.map(wallet.signatureBytes)
    court.same(unlessRefused(() => wallet.signedTwice(row.address ?? address, row.text ?? text, first, second)) !== null, row.accepted, row.name)
  }
  for (const one of all.signature_texts.accepted) court.same(wallet.signatureBytes(one.text ?? one).length, 65, 'text of a signature')
  for (const one of all.signature_texts.refused) court.refuses(() => wallet.signatureBytes(one.text ?? one), 'no text of a signature')
}

const shown = (keys: wallet.RootKeys) => ({
  admin_seed: hex(keys.adminSeed),
  admin_public: hex(keys.admin),
  head_seed: hex(keys.headSeed),
  head_public: hex(keys.head),
  box_secret: hex(keys.boxSecret),
  box_public: hex(keys.box)
})
const wanted = (row: Rows) => Object.fromEntries(Object.keys(shown(wallet.keysOfWords('abandon '.repeat(23) + 'art'))).map(name => [name, row[name]]))

export const derivation: Judge = async (all, court) => {
  const judge = async (row: Rows, secret: Bytes, address: string) => {
    const keys = await wallet.keysOfSecret({ secret, address, vault: row.vault, keyNumber: row.key_number, passphrase: row.passphrase })
    court.same(shown(keys), wanted(row), `${address} ${row.vault}`)
    court.same(keys.check, row.check, 'check')
    for (const [plain, tag] of [[false, row.vault_tag], [true, row.plain_vault_tag]]) if (tag) court.same(hex(wallet.vaultTag(keys.admin, plain)), tag, 'tag')
  }
  for (const row of all.wallet) await judge(row, fromHex(row.rs), row.address)
  for (const row of all.walletless) await judge(row, fromHex(row.secret), wallet.NO_ADDRESS)
  for (const passphrase of all.refused_passphrases) {
    const text = typeof passphrase === 'string' ? passphrase : passphrase.text
    let refused = false
    await wallet.keysOfSecret({ secret: new Uint8Array(64), address: wallet.NO_ADDRESS, vault: 'default', keyNumber: 1, passphrase: text }).catch(error => {
      refused = error.kind === 'passphrase'
    })
    court.same(refused, true, 'passphrase')
  }
}

export const recovery: Judge = (all, court) => {
  for (const row of all.recovery) {
    court.same([hex(wallet.secretOfWords(row.words)), wallet.wordsOfSecret(fromHex(row.secret))], [row.secret, row.words], row.words)
    court.same(shown(wallet.keysOfWords(row.words)), wanted(row), row.words)
  }
  for (const text of all.same_secret.texts) court.same(hex(wallet.secretOfWords(text)), all.same_secret.secret, text)
  for (const row of all.refused) court.refuses(() => wallet.secretOfWords(row.text), row.name, 'words')
}

export const ed25519: Judge = async (all, court) => {
  for (const row of all.seeds) {
    court.same([hex(signingPublic(fromHex(row.seed))), hex(sign(fromHex(row.seed), fromHex(row.message)))], [row.public, row.signature], row.seed)
  }
  for (const row of all.signatures) {
    court.same(await verify(fromHex(row.public), fromHex(row.message), fromHex(row.signature)), row.valid, row.name ?? row.category)
  }
  for (const row of all.keys) court.same(isSigningKey(fromHex(row.public)), row.ok, row.name)
  for (const row of all.box_keys) court.same(isBoxKey(fromHex(row.public)), row.ok, row.name)
}

const payloadOf = (row: Rows): Bytes => (row.payload.hex !== undefined ? fromHex(row.payload.hex) : utf8(row.payload.text.repeat(row.payload.times ?? 1)))

export const objects: Judge = (all, court) => {
  court.same(MOST_PAYLOAD, all.largest_payload, 'largest payload')
  for (const [size, padded] of all.pad) court.same(pad(size), padded, `pad ${size}`)
  const keyOf = (row: Rows) => new EpochKey(row.epoch, fromHex(row.ek ?? all.ek), fromHex(row.vault_tag ?? all.vault_tag))
  for (const row of all.ek_ids) court.same(keyOf(row).id, row.id, 'EK id')
  for (const row of all.sealed) {
    const object = keyOf(row).seal(row.type, row.ctx, payloadOf(row))
    court.same([object.length, hex(sha256(object))], [row.size, row.sha256], row.ctx)
    court.same(hex(sha256(keyOf(row).open(row.type, row.ctx, object))), hex(sha256(payloadOf(row))), row.ctx)
  }
  for (const row of all.refused) court.refuses(() => keyOf(row).open(row.type, row.ctx, fromHex(row.object)), row.name, 'open')
  for (const row of all.boxes) {
    const opened = openBox(fromHex(row.box), fromHex(row.secret))
    court.same(opened && hex(opened), row.opens, row.name)
    if (row.opens === null) continue
    court.same(hex(boxPublic(fromHex(row.secret))), row.public, row.name)
    court.same(openBox(sealBox(fromHex(row.opens), fromHex(row.public), new Uint8Array(32).fill(9)), fromHex(row.secret)), opened, row.name)
  }
}

export const deflate: Judge = (all, court) => {
  for (const row of all.streams) {
    const payload = unlessRefused(() => inflate(fromHex(row.stream), MOST_FILE))
    court.same(payload && hex(sha256(payload)), row.payload && hex(sha256(payloadOf(row))), row.name)
  }
  const key = new EpochKey(all.epoch, fromHex(all.ek), fromHex(all.vault_tag))
  for (const row of all.objects) {
    const payload = unlessRefused(() => key.open(row.type, all.ctx, fromHex(row.object)))
    court.same(payload && hex(sha256(payload)), row.payload && hex(sha256(payloadOf(row))), row.name)
  }
}
