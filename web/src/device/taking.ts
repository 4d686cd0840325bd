/** What was exported, here or elsewhere, taken in: texts beside what is here or in its place, events once, cards of new scopes. */

import { type Bytes, canonical, hex, Refused, sha256, utf8 } from '../core/bytes.ts'
import { type Assigning, assignScopes, type Part } from '../core/scope_tree.ts'
import { foreignId, lineOf } from '../core/timeline.ts'
import type { Imported } from '../results.ts'
import { MemoryError } from './errors.ts'
import { entryName, type Shown } from './shown.ts'
import type { Writing } from './writing.ts'

/** `merge`: what is here stays shown, and other texts come beside it; `replace`: the incoming text supersedes it. */
export type Strategy = 'merge' | 'replace'

/** Which scope becomes which, in words for people where that cannot be said. */
export function assigned(theirs: readonly string[], how: Assigning): Map<string, string> {
  try {
    return assignScopes(theirs, how)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    throw new MemoryError(error.kind === 'limit' ? 'limit' : 'usage', error.message, 'Say for each scope of that name what it becomes here, or that the whole is a backup of this memory.')
  }
}

export class Taking {
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

  /** One scope, as part of a write. `chosen`: what the scopes that come along become here. */
  async take(change: Writing, part: Omit<Part, 'problems'> & { readonly problems: readonly string[] }, scope: string, chosen: ReadonlyMap<string, string> = new Map()): Promise<void> {
    this.#problems.push(...part.problems)
    const { card } = part
    const isNew = scope !== '' && Object.keys(change.entry(`c/${scope}`)).length === 0
    if (isNew && card !== null) {
      const into = card.into === null ? null : (chosen.get(card.into) ?? null)
      await change.put(`c/${scope}`, utf8(canonical({ ...card, into: into === scope ? null : into })), [])
    }
    const behind = new Set(part.forgotten.filter(key => part.files.has(key) && Object.keys(change.entry(entryName(key, scope))).length === 0))
    for (const [key, text] of part.files) await this.#lay(change, key, text, scope, true, '')
    for (const [key, text] of part.more) await this.#lay(change, key, text, scope, false, '')
    for (const [key, text] of part.others) await this.#lay(change, key, text, scope, false, 'foreign')
    for (const key of behind) if (Object.keys(change.entry(entryName(key, scope))).length > 0) await change.forget(entryName(key, scope), [])
    const here = this.shown.events(scope)
    const known = new Set([...here.map(foreignId), ...here.map(lineOf)])
    const news = part.events.filter(event => !known.has(lineOf(event)) && !known.has(foreignId(event)))
    for (const event of news) await change.lineOfOthers({ ...event, id: foreignId(event) }, scope)
    this.#events += news.length
  }

  async #lay(change: Writing, key: string, text: string, scope: string, isFirst: boolean, of: string): Promise<void> {
    const name = entryName(key, scope)
    const entry = change.entry(name)
    const body: Bytes = utf8(text)
    const hash = hex(sha256(body))
    const view = this.shown.view(name)
    const isHere = Object.values(entry).some(value => value.body === hash)
    const isShown = isHere && view.own && view.dots.some(dot => entry[dot]?.body === hash)
    try {
      if (of === '' && key.startsWith('session-')) {
        const { Sessions } = await import('./sessions.ts')
        new Sessions(this.shown, scope).needNoApproval(key, body, !(isFirst && this.strategy === 'replace'))
      }
      if (Object.keys(entry).length === 0 && of === '') {
        await change.put(name, body, [])
        this.#added++
      } else if (isFirst && this.strategy === 'replace' && !isShown) {
        await change.put(name, body, view.own ? view.dots : [])
        this.#added++
      } else if (isHere) this.#same++
      else {
        await change.keepBeside(name, body, of)
        this.#kept++
      }
    } catch (error) {
      if (!(error instanceof MemoryError) || (error.kind !== 'limit' && error.kind !== 'usage')) throw error
      this.#problems.push(`${key} was left out: ${error.message}`)
    }
  }
}

/** An export that is an object, as JSON. */
export function asJson(given: object): string {
  try {
    return JSON.stringify(given)
  } catch (error) {
    throw new MemoryError('usage', `the export cannot be written as JSON: ${error instanceof Error ? error.message : error}`, 'Give what export() returned.')
  }
}
