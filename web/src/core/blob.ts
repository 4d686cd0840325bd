/** The portable blob `memory/0.1`: one scope as one JSON text, written (FORMAT.md 1.5). */

import { byCodePoints, hex, need, sha256 } from './bytes.ts'
import { conflictName, fileName } from './keys.ts'
import { lineOf, type TimelineEvent, union } from './timeline.ts'

export const BLOB_VERSION = 'memory/0.1'

/** A text and its key. */
export type Text = readonly [key: string, text: string]

/** Write a blob in its only form. */
export function writeBlob(files: ReadonlyMap<string, string>, events: readonly TimelineEvent[], index: string, others: readonly Text[] = []): string {
  need(index.isWellFormed(), 'format', 'the index is not Unicode text')
  const text = (pairs: readonly Text[]): string =>
    `{${[...pairs].sort(([a], [b]) => byCodePoints(a, b)).map(([name, one]) => `${JSON.stringify(name)}:${JSON.stringify(one)}`).join(',')}}`
  const named = text([...files].map(([key, one]): Text => [fileName(key), one]))
  const beside = others.length > 0 ? `,"others":${text(copiesOf(others))}` : ''
  const lines = union([events]).map(lineOf).join(',')
  return `{"version":"${BLOB_VERSION}","index":${JSON.stringify(index)},"files":${named}${beside},"timeline":[${lines}]}`
}

/** Return the file names of exported texts that are not shown. If two would have one name, the second gets more digits of its hash. */
export function copiesOf(texts: readonly Text[]): Text[] {
  const named = new Map<string, string>()
  for (const [key, text] of texts) {
    const digest = hex(sha256(text))
    for (let start = 0; start < digest.length; start += 8) {
      const name = conflictName(key, digest.slice(start))
      const held = named.get(name)
      if (held === undefined) named.set(name, text)
      if (held === undefined || held === text) break
    }
  }
  return [...named]
}
