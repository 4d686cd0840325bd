/** Import of an export: texts as alternatives or replacements, events once, cards of new scopes. */

import { type Bytes, canonical, hex, Refused, sha256, utf8 } from '../core/bytes.ts'
import { type Assigning, assignScopes, type Part } from '../core/scope_tree.ts'
import { foreignId, lineOf } from '../core/timeline.ts'
import type { Imported } from '../results.ts'
import { MemoryError } from './errors.ts'
import { type Coming, isCutOff, mayBePart, Sessions } from './sessions.ts'
import { entryName, type Shown } from './shown.ts'
import type { Writing } from './writing.ts'

/** `merge`: keep the shown texts and add different ones as alternatives; `replace`: the imported texts supersede them. */
export type Strategy = 'merge' | 'replace'

/** Map the imported scopes to scopes here; the error is for people. */
export function assigned(theirs: readonly string[], how: Assigning): Map<string, string> {
  try {
    return assignScopes(theirs, how)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    throw new MemoryError(error.kind === 'limit' ? 'limit' : 'usage', error.message, 'Say for each scope of that name what it becomes here, or that the whole is a backup of this memory.')
  }
}

export class Importing {
  #added = 0
  #kept = 0
  #same = 0
  #events = 0
  readonly #problems: string[] = []

  constructor(
    readonly shown: Shown,
    readonly strategy: Strategy
  ) {}

  done(): Imported {
    return { added: this.#added, kept: this.#kept, same: this.#same, events: this.#events, problems: this.#problems }
  }

  /** Import one scope, as part of a write. `chosen`: the scopes here for the scopes that come along. */
  async take(change: Writing, part: Omit<Part, 'problems'> & { readonly problems: readonly string[] }, scope: string, chosen: ReadonlyMap<string, string> = new Map()): Promise<void> {
    this.#problems.push(...part.problems)
    const { card } = part
    const isNew = scope !== '' && Object.keys(change.entry(`c/${scope}`)).length === 0
    if (isNew && card !== null) {
      const into = card.into === null ? null : (chosen.get(card.into) ?? null)
      await change.put(`c/${scope}`, utf8(canonical({ ...card, into: into === scope ? null : into })), [])
    }
    const behind = new Set(part.forgotten.filter(key => part.files.has(key) && Object.keys(change.entry(entryName(key, scope))).length === 0))
    const own = [...part.files, ...part.more]
    const cut = new Set(own.filter(([key, text]) => isCutOff(key, utf8(text))).map(([key]) => key))
    const unsure = unsureParts(own.map(([key]) => key), new Set([...part.unread, ...cut]))
    const parts: Coming[] = []
    for (const [isFirst, texts] of [[true, part.files], [false, part.more]] as const) {
      for (const [key, text] of texts) {
        if (isCutOff(key, utf8(text))) this.#problems.push(`${key} was left out: its last line is cut off`)
        else if (unsure.has(key)) this.#problems.push(`${key} was left out: a later part of its session was`)
        else await this.#lay(change, key, text, scope, isFirst, '', parts)
      }
    }
    for (const [key, text] of part.others) await this.#lay(change, key, text, scope, false, 'foreign')
    for (const key of behind) if (Object.keys(change.entry(entryName(key, scope))).length > 0) await change.forget(entryName(key, scope), [])
    const here = this.shown.events(scope)
    const known = new Set([...here.map(foreignId), ...here.map(lineOf)])
    const news = part.events.filter(event => !known.has(lineOf(event)) && !known.has(foreignId(event)))
    for (const event of news) await change.lineOfOthers({ ...event, id: foreignId(event) }, scope)
    this.#events += news.length
  }

  /** `parts`: the parts of sessions that this write stored before. */
  async #lay(change: Writing, key: string, text: string, scope: string, isFirst: boolean, of: string, parts: Coming[] = []): Promise<void> {
    const name = entryName(key, scope)
    const entry = change.entry(name)
    const body: Bytes = utf8(text)
    const hash = hex(sha256(body))
    const view = this.shown.view(name)
    const isHere = Object.values(entry).some(value => value.body === hash)
    const isShown = isHere && view.own && view.dots.some(dot => entry[dot]?.body === hash)
    try {
      if (of === '' && mayBePart(key)) {
        const coming = { key, data: body, isBeside: !(isFirst && this.strategy === 'replace') }
        new Sessions(this.shown, scope).needNoApproval(coming, parts)
        parts.push(coming)
      }
      if (Object.keys(entry).length === 0 && of === '') {
        await change.put(name, body, [])
        this.#added++
      } else if (isFirst && this.strategy === 'replace' && !isShown) {
        await change.put(name, body, view.own ? view.dots : [])
        this.#added++
      } else if (isHere) this.#same++
      else {
        await change.writeAlternative(name, body, of)
        this.#kept++
      }
    } catch (error) {
      if (!(error instanceof MemoryError) || (error.kind !== 'limit' && error.kind !== 'usage')) throw error
      this.#problems.push(`${key} was left out: ${error.message}`)
    }
  }
}

/**
 * Return the keys of parts that come before a missing one of the same session and device: the missing one may have recorded that their
 * messages are pending.
 */
function unsureParts(keys: readonly string[], missing: ReadonlySet<string>): Set<string> {
  const last = new Map<string, number>()
  const placeOf = (key: string): [of: string, number: number] => [key.slice(0, key.lastIndexOf('-')), Number(key.slice(key.lastIndexOf('-') + 1))]
  for (const [of, number] of [...missing].filter(mayBePart).map(placeOf)) last.set(of, Math.max(last.get(of) ?? -1, number))
  return new Set(keys.filter(key => {
    const [of, number] = placeOf(key)
    return mayBePart(key) && number <= (last.get(of) ?? -1)
  }))
}

/** Return an export that is an object, as JSON. */
export function asJson(value: object): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    throw new MemoryError('usage', `the export cannot be written as JSON: ${error instanceof Error ? error.message : error}`, 'Give what export() returned.')
  }
}
