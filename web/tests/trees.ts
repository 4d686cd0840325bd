/** Trees made by rule, and the CIDs of their roots (FORMAT.md 6). */

import { chacha20 } from '@noble/ciphers/chacha.js'
import { type Bytes, join, number, sha256, utf8 } from '../src/core/bytes.ts'
import type { Target } from '../src/core/dagpb.ts'
import { putFile, putTree } from '../src/core/unixfs.ts'
import type { Judge, Rows } from './judging.ts'

const keystream = (seed: string, size: number): Bytes => chacha20(sha256(seed), new Uint8Array(12), new Uint8Array(size))

function content(rule: Rows): Bytes {
  if (rule.text !== undefined) return utf8(rule.text)
  if (rule.zeros !== undefined) return new Uint8Array(rule.zeros)
  if (rule.chacha20 !== undefined) return keystream(rule.chacha20.seed, rule.chacha20.size)
  const { seed, size } = rule.sha256_stream
  const parts: Bytes[] = []
  for (let n = 0; 32 * n < size; n++) parts.push(sha256(join(seed, number(n, 8))))
  return join(...parts).slice(0, size)
}

function namesOf(rule: Rows): string[] {
  if (rule.list !== undefined) return rule.list
  if (rule.prefix !== undefined) return Array.from({ length: rule.count }, (_, n) => rule.prefix + String(n).padStart(rule.digits, '0'))
  const letters = 'abcdefghijklmnopqrstuvwxyz01234567890-_.'
  const lengths: number[] = rule.lengths.flatMap(([count, length]: [number, number]) => Array<number>(count).fill(length))
  const stream = keystream(rule.keystream, lengths.reduce((sum, one) => sum + one, 0))
  let at = 0
  return lengths.map(length => Array.from(stream.subarray(at, (at += length)), byte => letters[byte % 39]).join(''))
}

const ignore = (): void => undefined

function rootOf(row: Rows): string {
  if (row.file !== undefined) return putFile(content(row.file), ignore).cid.text
  const files = new Map<string, Target>()
  const folders: string[] = []
  for (const entry of row.folder) {
    if (entry.empty_folder !== undefined) folders.push(entry.path)
    else {
      const to = putFile(content(entry), ignore)
      const paths = entry.names === undefined ? [entry.path] : namesOf(entry.names).map(name => (entry.path ?? '') + name)
      for (const path of paths) files.set(path, to)
    }
  }
  return putTree(files, ignore, folders).cid.text
}

/** `large` are files that are read as a stream, of a gigabyte each: this client makes none. */
export const cidTrees: Judge = (all, court) => {
  for (const row of all.trees) court.same(rootOf(row), row.cid, row.name)
}
