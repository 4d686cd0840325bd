/** Keys and sealed objects (FORMAT.md 2 and 3). */

import { x25519 } from '@noble/curves/ed25519.js'
import { blake2b as nobles } from '@noble/hashes/blake2.js'
import { blake2b } from '../src/core/blake2b.ts'
import { type Bytes, fromHex, hex, sha256, unlessRefused, utf8 } from '../src/core/bytes.ts'
import { boxPublic, isBoxKey, isSigningKey, openBox, sealBox, sign, signingPublic, verify } from '../src/core/curves.ts'
import { inflate } from '../src/core/inflate.ts'
import { MOST_FILE } from '../src/core/limits.ts'
import { vaultTag } from '../src/core/ring.ts'
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
    for (const [plain, tag] of [[false, row.vault_tag], [true, row.plain_vault_tag]]) if (tag) court.same(hex(vaultTag(keys.admin, plain)), tag, 'tag')
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
  // What the curve itself says of a key, of it with its highest bit turned, and of those beside it.
  const hasSecret = (key: Bytes): boolean => {
    try {
      return x25519.scalarMult(new Uint8Array(32).fill(1), key).some(byte => byte !== 0)
    } catch {
      return false
    }
  }
  for (const row of all.box_keys) {
    for (const [at, by] of [[31, 128], [0, 1], [0, 2], [15, 1]] as const) {
      const key = fromHex(row.public)
      key[at] = (key[at] as number) ^ by
      court.same(isBoxKey(key), hasSecret(key), `${row.name}, byte ${at}`)
    }
  }
}

const payloadOf = (row: Rows): Bytes => (row.payload.hex !== undefined ? fromHex(row.payload.hex) : utf8(row.payload.text.repeat(row.payload.times ?? 1)))

/** Our BLAKE2b gives what noble's gives, at and around the ends of its blocks. */
function compareHashes(court: Parameters<Judge>[1]): void {
  for (const size of [0, 1, 63, 64, 127, 128, 129, 255, 256, 257, 383, 384, 1000, 4096, 70_001]) {
    const message = Uint8Array.from({ length: size }, (_, at) => (at * 7 + size) & 255)
    for (const [keySize, outSize] of [[32, 24], [1, 64], [64, 1], [0, 24]] as const) {
      const key = message.length >= keySize ? message.slice(0, keySize) : new Uint8Array(keySize).fill(size)
      const cut = size >> 1
      court.same(hex(blake2b(key, outSize, message.subarray(0, cut), message.subarray(cut))), hex(nobles(message, keySize === 0 ? { dkLen: outSize } : { key, dkLen: outSize })), `BLAKE2b of ${size}`)
    }
  }
}

export const objects: Judge = (all, court) => {
  compareHashes(court)
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
