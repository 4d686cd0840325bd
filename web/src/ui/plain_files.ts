/** A memory as plain files in a zip, the tree that `ipfsmem export --zip` writes and `ipfsmem import` takes (FORMAT.md 1.6). */

import { zipSync } from 'fflate'
import { type Bytes, byCodePoints, canonical, hex, sha256, utf8 } from '../core/bytes.ts'
import { conflictName, fileName, INDEX_FILE } from '../core/keys.ts'
import { instant, lineOf } from '../core/timeline.ts'
import type { Behind } from './local_client.ts'

/** Zips know no earlier moment; when something was saved is nobody's business. */
const EARLIEST = new Date(1980, 0, 1)

/** The bytes of the zip. */
export async function savedAs(memory: Behind): Promise<Bytes> {
  const files = new Map<string, string>()
  const cards = new Map((await memory.scopes()).map(one => [one.token, one]))
  for (const scope of ['', ...cards.keys()]) {
    const top = scope === '' ? '' : `scopes/${scope}/`
    const base = `${top}memory/`
    const blob = JSON.parse(await memory.export({ scope })) as { index: string; files: Record<string, string> }
    for (const [name, text] of Object.entries(blob.files)) files.set(`${base}${name}`, text)
    const forgotten: string[] = []
    for (const one of await memory.conflicts({ scope })) {
      if (one.forgotten) forgotten.push(one.key)
      for (const copy of one.copies) files.set(`${base}${copy.own ? '' : 'others/'}${freeName(files, base, one.key, copy.text)}`, copy.text)
    }
    for (const event of await memory.timeline({ scope })) {
      const name = `${base}timeline/${new Date(instant(event.ts) ?? 0).toISOString().slice(0, 10)}.jsonl`
      files.set(name, `${files.get(name) ?? ''}${lineOf(event)}\n`)
    }
    files.set(`${base}${INDEX_FILE}`, blob.index)
    const card = cards.get(scope)
    if (card !== undefined || forgotten.length > 0) {
      const said = card === undefined ? null : { ids: card.ids, into: card.into, kind: card.kind, title: card.title, v: 1 }
      files.set(`${top}scope.json`, `${canonical({ card: said, forgotten: forgotten.sort(byCodePoints), v: 1 })}\n`)
    }
  }
  const sorted = [...files].sort(([a], [b]) => byCodePoints(a, b)).map(([name, text]) => [name, utf8(text)] as const)
  return zipSync(Object.fromEntries(sorted), { mtime: EARLIEST })
}

/** The name of a text that is not what is shown; of two that would have one name the second takes further digits of its hash. */
function freeName(files: ReadonlyMap<string, string>, base: string, key: string, text: string): string {
  const digest = hex(sha256(text))
  for (let start = 0; start < digest.length; start += 8) {
    const name = conflictName(key, digest.slice(start))
    const held = files.get(`${base}${name}`)
    if (held === undefined || held === text) return name
  }
  return fileName(key)
}
