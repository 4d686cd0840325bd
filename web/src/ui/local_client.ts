/**
 * A vault in this browser, without a server: the client (`../memory.ts`), in a worker or in the page, in the form that the views need.
 *
 * It only translates. A view is shown text with a list of dots; a write passes them, and replaces exactly these.
 */

import { normalTs } from '../core/timeline.ts'
import { dayHere } from '../device/days.ts'
import type { Layout, Reading, Token } from '../memory.ts'
import {
  BEST, type Choice, type Clash, type Context, type DayCount, type Finding, type Happening, type Heard, type Line, type Member, type MemoryClient,
  type Opened, type Place, Refusal, type Right, type Scope, type Shown, type State, type Version, type Written
} from './client.ts'
import { happeningOf } from './happening.ts'
import { sentence } from './view.ts'
import type { Life } from './life.ts'
import { LocalDreams, LocalGraph, LocalSessions } from './local_life.ts'
import { LocalUsage } from './local_usage.ts'
import { type Behind, fromVault } from './local_vault.ts'

export type LocalHow = {
  /** Name of this vault here. */
  readonly name: string
  readonly right: Right
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number
  /** Whether the browser agreed to persistent storage; null if nothing is stored. */
  readonly persisted: () => Promise<boolean | null>
}

/** Events per page. */
const PAGE = 200

const seenOf = (token: Token): string => JSON.stringify(token)
const tokenOf = (seen: string): Token => JSON.parse(seen) as Token
const gone = (key: string): Refusal => new Refusal('not found', `there is no memory ${key}`, '', 404)

const shownOf = (one: Reading): Shown => ({ key: one.key, scope: one.scope, fields: one.fields, body: one.body, text: one.text, seen: seenOf(one.token), merged: one.merged, own: one.own })

export class LocalClient implements MemoryClient {
  readonly alone = true
  readonly life: Life = { sessions: new LocalSessions(() => this.memory), graph: new LocalGraph(() => this.memory), dreams: new LocalDreams(() => this.memory), usage: new LocalUsage(() => this.memory) }
  #notices: readonly string[] = []
  #heard: Heard | null = null

  constructor(
    readonly memory: Behind,
    readonly how: LocalHow
  ) {}

  async open(): Promise<Opened> {
    return { vaultName: this.how.name, vaultNames: [this.how.name], right: this.how.right, locked: false, whole: true }
  }

  /** Only one vault here. */
  choose(): void {}

  async list(scope: string, how: { type?: string; match?: string }): Promise<{ lines: readonly Line[]; next: string | null; total: number }> {
    const match = (how.match ?? '').toLowerCase()
    const all = await fromVault(() => this.memory.list({ scope, ...(how.type ? { type: how.type } : {}) }))
    const lines = all
      .filter(one => match === '' || `${one.key} ${one.name} ${one.description}`.toLowerCase().includes(match))
      .map((one): Line => ({
        key: one.key, scope: one.scope, name: one.name === one.key ? '' : one.name, description: one.description, type: one.type, updated: one.updated || one.created,
        tags: one.tags, conflicts: one.conflicts, merged: one.merged, here: one.here, score: null, own: one.own
      }))
    return { lines, next: null, total: lines.length }
  }

  async recall(query: string, scope: string): Promise<readonly Line[]> {
    const { hits } = await fromVault(() => this.memory.recall(query, { scope, limit: BEST }))
    return hits.map(({ reading: { key, fields, own, merged, conflicts }, score }): Line => ({
      key, scope, name: fields['name'] ?? '', description: fields['description'] ?? '', type: fields['type'] ?? '', updated: fields['updated'] ?? fields['created'] ?? '',
      tags: [], conflicts: conflicts.length, merged, here: true, score, own
    }))
  }

  async read(key: string, scope: string): Promise<Shown> {
    const found = await fromVault(() => this.memory.read(key, { scope }))
    if (found === null) throw gone(key)
    return shownOf(found)
  }

  async write(key: string, scope: string, written: Written, seen: string | null): Promise<Shown> {
    await this.#stillSeen(key, scope, seen)
    const { body, type, ...parts } = written
    // Nothing was shown, so nothing is replaced: a concurrent text becomes an alternative.
    const how = { ...parts, ...(type === undefined ? {} : { type }), scope, seen: seen === null ? [] : tokenOf(seen) }
    return shownOf(await fromVault(() => this.memory.write(key, body, how)))
  }

  async forget(key: string, scope: string, seen: string): Promise<void> {
    await fromVault(() => this.memory.forget(key, { scope, seen: tokenOf(seen) }))
  }

  async history(key: string, scope: string): Promise<readonly Version[]> {
    const { versions } = await fromVault(() => this.memory.history(key, { scope }))
    return versions.map(({ sha256, at, device, label, now, own }) => ({ sha256, at, by: label || device, now, own }))
  }

  async past(key: string, scope: string, sha256: string): Promise<string> {
    return fromVault(() => this.memory.past(key, { text: sha256 }, { scope }))
  }

  async restore(key: string, scope: string, sha256: string, seen: string): Promise<void> {
    await fromVault(() => this.memory.restore(key, { text: sha256 }, { scope, seen: seen === '' ? [] : tokenOf(seen) }))
  }

  async context(scope: string, how: { query?: string; maxTokens?: number; layout?: string }): Promise<Context> {
    const { query = null, maxTokens, layout } = how
    const asks = { scope, query: query || null, preview: true, ...(maxTokens ? { maxTokens } : {}), ...(layout ? { layout: layout as Layout } : {}) }
    const { text, tokens, shown, skipped, listed, leftOut } = await fromVault(() => this.memory.context(asks))
    return { text, tokens, shown, skipped, listed, leftOut, secrets: [] }
  }

  async events(scope: string, how: { day?: string; cursor?: string }): Promise<{ events: readonly Happening[]; next: string | null }> {
    const all = await fromVault(() => this.memory.timeline({ scope }))
    const newest = all.filter(one => !how.day || dayHere(one.ts) === how.day).reverse()
    const from = Number(how.cursor ?? 0)
    const events = newest.slice(from, from + PAGE).map(one => happeningOf({ ...one, ts: normalTs(one.ts) ?? one.ts }))
    return { events, next: from + PAGE < newest.length ? String(from + PAGE) : null }
  }

  async days(scope: string, since: string): Promise<readonly DayCount[]> {
    const counted = new Map<string, number>()
    for (const { ts } of await fromVault(() => this.memory.timeline({ scope }))) {
      const day = dayHere(ts)
      if (day >= since) counted.set(day, (counted.get(day) ?? 0) + 1)
    }
    return [...counted].map(([day, events]) => ({ day, events }))
  }

  async note(scope: string, type: string, data: Readonly<Record<string, string>>): Promise<void> {
    await fromVault(() => this.memory.note(type, data, { scope }))
  }

  async conflicts(): Promise<readonly Clash[]> {
    const all = await fromVault(() => this.memory.conflicts())
    return all.map(one => ({
      key: one.key, scope: one.scope, seen: seenOf(one.token), forgotten: one.forgotten, by: one.shown?.label ?? '', text: one.shown?.text ?? null,
      copies: one.copies.map(copy => ({ file: copy.file, by: copy.label, text: copy.text }))
    }))
  }

  async resolve(clash: Clash, choice: Choice): Promise<void> {
    const text = 'keep' in choice ? null : 'text' in choice ? choice.text : (clash.copies.find(one => one.file === choice.alternative)?.text ?? null)
    if (text === null && !('keep' in choice)) throw gone(clash.key)
    const now = (await this.conflicts()).find(one => one.key === clash.key && one.scope === clash.scope)
    if (now?.seen !== clash.seen) throw changed(clash.key)
    await fromVault(() => this.memory.resolve(clash.key, text, { scope: clash.scope, seen: tokenOf(clash.seen) }))
  }

  async scopes(): Promise<readonly Scope[]> {
    return (await fromVault(() => this.memory.scopes())).map(one => ({ name: one.token, title: one.title, memories: one.memories }))
  }

  async status(): Promise<State> {
    const one = await fromVault(() => this.memory.status())
    return { ...one, vaultName: this.how.name, mode: 'encrypted-ipfs', published: this.how.right !== 'read', unlockedUntil: null, notices: this.#notices }
  }

  async members(): Promise<readonly Member[]> {
    const all = await fromVault(() => this.memory.members())
    return all.map(({ id, label, role, kind, thisDevice, heard }) => ({ id, label, role, kind, thisDevice, heard, root: false }))
  }

  async providers(): Promise<readonly Place[]> {
    const all = await fromVault(() => this.memory.providers())
    return all.map(({ name, can }) => ({ name, can: can.join(', '), limits: [], at: null, problem: this.#notices.find(one => one.startsWith(`${name} `)) ?? '' }))
  }

  async check(): Promise<readonly Finding[]> {
    const { memories, notFetched, unpublished } = await this.status()
    const found: Finding[] = []
    const say = (text: string, hint: string): void => void found.push({ level: 'warning', text, hint })
    if (notFetched > 0) say(`the texts of ${notFetched} of ${memories} memories are not fetched`, 'A sync asks for them again.')
    if (unpublished && this.how.right !== 'read') say('unsynced changes are on this device only', 'Sync, or save the unsynced changes as a file.')
    if ((await this.how.persisted()) === false) say('this browser may delete the data of this page when it runs out of space', 'Allow it to keep data, and sync often.')
    if (found.length === 0) found.push({ level: 'ok', text: `all ${memories} memories are here and open`, hint: '' })
    return found
  }

  async sync(): Promise<string> {
    try {
      const report = await fromVault(() => this.memory.sync())
      this.#notices = report.notices.map(one => one.text)
      const done = [report.joined ? 'received changes' : '', report.published ? 'published' : ''].filter(Boolean).join(', ')
      const said = [...(done === '' ? [] : [done]), ...this.#notices]
      return (said.length > 0 ? said : ['Everything is up to date']).map(sentence).join(' ')
    } catch (error) {
      this.#notices = [`it did not sync: ${(error as Error).message}`]
      throw error
    } finally {
      this.#heard?.change({ ...NOTHING, what: 'sync' })
    }
  }

  async export(format: 'zip' | 'car' | 'blob', scope: string): Promise<Blob> {
    if (format === 'blob') return new Blob([await fromVault(() => this.memory.export({ scope }))], { type: 'application/json' })
    if (format === 'zip') return new Blob([await fromVault(async () => (await import('./plain_files.ts')).savedAs(this.memory)) as BlobPart], { type: 'application/zip' })
    const out = await fromVault(() => this.memory.outbox())
    if (out === null) throw new Refusal('none', 'this browser has published nothing yet', 'Sync once.', 404)
    return new Blob([out.car as BlobPart], { type: 'application/vnd.ipld.car' })
  }

  subscribe(heard: Heard): () => void {
    this.#heard = heard
    const ends = [
      this.memory.subscribe(() => heard.change(NOTHING)),
      this.memory.onStep?.(doing => heard.change({ ...NOTHING, what: 'sync', doing })) ?? (() => undefined)
    ]
    return () => {
      this.#heard = null
      for (const end of ends) end()
    }
  }

  /** Raises Refusal if the memory differs from `seen`; null: if it exists. */
  async #stillSeen(key: string, scope: string, seen: string | null): Promise<void> {
    const now = await fromVault(() => this.memory.read(key, { scope, counts: false }))
    if ((now === null ? null : seenOf(now.token)) !== seen) throw changed(key)
  }
}

const NOTHING = { what: '', scope: '', key: '', doing: '', done: 0, total: 0, locked: false }

const changed = (key: string): Refusal => new Refusal('changed', `${key} was changed meanwhile`, 'Nothing was replaced. Review it again.', 412)

