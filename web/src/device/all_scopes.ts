/** Export and import of all scopes as plain files by path: the folder that `ipfsmem export` writes and `ipfsmem import` accepts. */

import { copiesOf, type Text } from '../core/blob.ts'
import { byCodePoints, utf8 } from '../core/bytes.ts'
import { fileName } from '../core/keys.ts'
import { type Assigning, baseFiles, readScopeTree } from '../core/scope_tree.ts'
import type { Imported } from '../results.ts'
import type { Shown } from './shown.ts'
import { assigned, type Strategy, Importing } from './importing.ts'
import type { Writing } from './writing.ts'

/** Return the files of all scopes, or of one. Texts that are not on this device are left out. `index`: the index of a scope. */
export function filesOf(shown: Shown, scope: string | null, index: (scope: string) => string): Record<string, string> {
  const cards = new Map(shown.scopes().map(one => [one.token, one]))
  const files: [string, string][] = []
  for (const one of scope === null ? ['', ...cards.keys()] : [scope]) {
    const [texts, beside, forgotten]: [Map<string, string>, [string, Text][], string[]] = [new Map(), [], []]
    for (const { key, here } of shown.list([one], { sessions: true })) {
      const reading = here ? shown.readIn(key, one) : null
      if (reading?.own === true) texts.set(fileName(key), reading.text)
      else if (reading !== null) beside.push(['others/', [key, reading.text]])
    }
    for (const conflict of shown.conflicts(one)) {
      if (conflict.forgotten) forgotten.push(conflict.key)
      for (const copy of conflict.copies) beside.push([copy.own ? '' : 'others/', [conflict.key, copy.text]])
    }
    for (const folder of ['', 'others/']) for (const [name, text] of copiesOf(beside.filter(([where]) => where === folder).map(([, text]) => text))) texts.set(folder + name, text)
    const known = cards.get(one)
    const card = known === undefined ? null : { ids: known.ids, into: known.into, kind: known.kind, title: known.title, v: 1 as const }
    files.push(...baseFiles(one, { texts, events: shown.events(one), index: index(one), card, forgotten }))
  }
  return Object.fromEntries(files.sort(([a], [b]) => byCodePoints(a, b)))
}

/** Import such files. Everything is decided before anything is written; `written` runs one write. */
export async function takenIn(shown: Shown, files: Readonly<Record<string, string>>, strategy: Strategy, said: Pick<Assigning, 'maps' | 'same'>, written: (work: (change: Writing) => Promise<void>) => Promise<void>): Promise<Imported> {
  const { replica } = shown
  const parts = readScopeTree(new Map(Object.entries(files).map(([path, text]) => [path, utf8(text)])))
  const cards = [...replica.entries].filter(([name]) => name.startsWith('c/'))
  const live = shown.scopes().map(one => one.token)
  const own = cards.filter(([, entry]) => Object.keys(entry).some(dot => dot.startsWith(replica.device.id))).map(([name]) => name.slice(2))
  const chosen = assigned([...parts.keys()], { ...said, live, own, forgotten: cards.map(([name]) => name.slice(2)).filter(scope => shown.isForgotten(scope)) })
  const importing = new Importing(shown, strategy)
  await written(async change => {
    for (const [there, part] of parts) await importing.take(change, part, chosen.get(there) as string, chosen)
  })
  return importing.done()
}
