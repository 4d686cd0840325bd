/**
 * An open memory: what an app or a page calls. The words are those of every other face of ipfsmem.
 *
 * It only translates: what a write replaces says `device/`, what a sync does `sync/`, and what a text means `core/`. It touches
 * no page; where it is kept, how it asks, its keys, time and chance are passed in.
 */

import { wordlist } from '@scure/bip39/wordlists/english.js'
import { BLOB_VERSION, readBlob, type Text, writeBlob } from './core/blob.ts'
import { base64url, byCodePoints, type Bytes, fromBase64url, fromHex, fromUtf8, hex, need, sha256, unlessRefused, utf8 } from './core/bytes.ts'
import { writeCar } from './core/car.ts'
import { type Card, cardOf } from './core/cards.ts'
import { clockMs } from './core/clock.ts'
import { enrolleeOf, enrolmentRequest, fingerprint } from './core/enrolling.ts'
import { ipnsName } from './core/cid.ts'
import { renderIndex } from './core/index.ts'
import { readRecord, targetOf } from './core/ipns.ts'
import { isKey, isScope } from './core/keys.ts'
import { MOST_FILE } from './core/limits.ts'
import { fieldOf, type MemoryFile, parseFile, readTags, renderFile, writeTags } from './core/memory_file.ts'
import { isSessionPart } from './core/sessions.ts'
import { readName, type Value } from './core/state.ts'
import { readRequest } from './core/statements.ts'
import { foreignId, instant, lineOf, type TimelineEvent, timelineOf } from './core/timeline.ts'
import type { Copy as ViewCopy, OwnView } from './core/view.ts'
import { fetcherOf, isOwnWord } from './core/views.ts'
import type { RootKeys } from './core/wallet.ts'
import type { Device, World } from './device/device.ts'
import { theWorld } from './device/device.ts'
import { MemoryError } from './device/errors.ts'
import { Replica } from './device/replica.ts'
import { writing, type Writing } from './device/writing.ts'
import { type Counted, type Document, Ranking, worthOf } from './recall/ranking.ts'
import { split } from './recall/terms.ts'
import type { Keeping } from './store/keeping.ts'
import type { Block, Provider } from './sync/provider.ts'
import { treeOf } from './sync/fetching.ts'
import { type Pointer, sync, type SyncHow, type SyncReport } from './sync/syncing.ts'

/** Dots that a text was read with: a write that gives them back replaces exactly these. */
export type Token = readonly string[]

/** One text as it is shown. */
export type Reading = {
  readonly key: string
  /** '' is the nameless scope. */
  readonly scope: string
  /** The whole file, header and all. */
  readonly text: string
  readonly body: string
  readonly fields: Readonly<Record<string, string>>
  readonly token: Token
  /** Whether it was put together of what several devices wrote at once. */
  readonly merged: boolean
  /** Names of texts beside it, for `conflicts`. */
  readonly conflicts: readonly string[]
  /** Id and label of the device that wrote it, and when, in milliseconds since 1970. */
  readonly device: string
  readonly label: string
  readonly at: number
  /** Whether it is the word of the person whose device this is. */
  readonly own: boolean
}

export type Listed = {
  readonly key: string
  readonly scope: string
  readonly name: string
  readonly description: string
  readonly type: string
  readonly tags: readonly string[]
  readonly created: string
  readonly updated: string
  readonly device: string
  readonly label: string
  readonly at: number
  readonly merged: boolean
  readonly conflicts: number
  readonly own: boolean
  /** Whether its text is on this device. */
  readonly here: boolean
}

/** A text beside the one that is shown. `file` names it. */
export type Copy = Omit<Reading, 'merged' | 'conflicts'> & { readonly file: string }

/** A memory with texts that are not shown. Settling it replaces what `token` names, and nothing else. */
export type Unsettled = {
  readonly key: string
  readonly scope: string
  readonly shown: Reading | null
  readonly copies: readonly Copy[]
  readonly token: Token
  readonly forgotten: boolean
}

export type Scope = { readonly token: string; readonly title: string; readonly kind: Card['kind']; readonly ids: Card['ids']; readonly into: string | null; readonly memories: number }
export type Member = { readonly id: string; readonly label: string; readonly kind: string; readonly role: string; readonly mine: boolean; readonly thisDevice: boolean }

export type Status = { readonly memories: number; readonly events: number; readonly conflicts: number; readonly notFetched: number; readonly unpublished: boolean }

export type WriteHow = {
  readonly scope?: string
  readonly name?: string
  readonly description?: string
  readonly type?: string
  readonly tags?: readonly string[]
  /** Other fields of the header; an empty value takes one away. */
  readonly fields?: Readonly<Record<string, string>>
  /** What its writer was shown: a reading, or its token. */
  readonly seen?: Seen
}
export type Seen = Token | { readonly token: Token }

export type Hit = { readonly reading: Reading; readonly score: number; readonly parts: Readonly<Record<string, number>> }
export type Recall = { readonly hits: readonly Hit[]; readonly searched: number; readonly notFetched: number }

export type Imported = { readonly added: number; readonly kept: number; readonly same: number; readonly events: number; readonly problems: readonly string[] }

/** Something changed: by a write here, by another tab, or by a sync. */
export type Change = { readonly revision: number }

export type Opening = {
  readonly device: Device
  readonly keeping: Keeping
  readonly providers?: readonly Provider[]
  readonly world?: World
  /** The wallet's keys or those of recovery words: needed where this device does not belong to the memory yet. */
  readonly root?: RootKeys | null
  /** Where a memory is found that lets this device in by its request. */
  readonly pointer?: Pointer | null
}

export class Memory {
  readonly #replica: Replica
  #providers: readonly Provider[]
  readonly #heard = new Set<(change: Change) => void>()
  readonly #stop: () => void
  #told = -1
  readonly #documents = new WeakMap<object, { document: Document; today: number }>()
  readonly #counted = new WeakMap<Document, Counted>()

  private constructor(replica: Replica, providers: readonly Provider[]) {
    this.#replica = replica
    this.#providers = providers
    this.#stop = replica.keeping.listen(() => void this.#refresh())
  }

  /** Open what this device keeps; where it keeps nothing yet, the memory of these keys is looked for and this device let in. */
  static async load({ device, keeping, providers = [], world = theWorld, root = null, pointer = null }: Opening): Promise<Memory> {
    const memory = new Memory(new Replica(device, keeping, world), providers)
    await keeping.exclusively('write', () => memory.#replica.refresh())
    if (memory.#replica.ring === null || root !== null) await memory.sync({ root, pointer })
    return memory
  }

  get device(): { readonly id: string; readonly label: string } {
    return { id: this.#replica.device.id, label: this.#replica.device.label }
  }

  /** Use other providers from now on. */
  use(providers: readonly Provider[]): void {
    this.#providers = providers
  }

  close(): void {
    this.#stop()
    this.#heard.clear()
  }

  /** Hear of every change; -> how to stop. It is told that something changed, and asks again for what it shows. */
  subscribe(heard: (change: Change) => void): () => void {
    this.#heard.add(heard)
    return () => void this.#heard.delete(heard)
  }

  // --- reading ---

  /** One memory as it is shown; null when there is none. */
  read(key: string, { scope = '' } = {}): Reading | null {
    const name = entryName(key, scope)
    if (this.#isForgotten(scope)) return null
    const view = this.#view(name)
    if (view.shown === null) {
      if (view.notFetched.length > 0) throw new MemoryError('not found', `${key} is known but its text is not fetched yet`, 'Try again after a sync.')
      return null
    }
    return this.#reading(key, scope, name, view)
  }

  /** All memories that are shown, by key; of one scope, the nameless one unless said otherwise, or of all (`scope: null`). */
  list({ scope = '', type, tag, since, sessions = false }: { scope?: string | null; type?: string; tag?: string; since?: string; sessions?: boolean } = {}): Listed[] {
    const out: Listed[] = []
    const from = since === undefined ? null : instant(since)
    if (since !== undefined && from === null) throw new MemoryError('usage', `${since} is no date`, 'For instance 2026-11-22 or 2026-11-22T17:30:00Z.')
    for (const name of this.#replica.entries.keys()) {
      const said = readName(name)
      if (said.kind !== 'm' || (scope !== null && said.scope !== scope) || this.#isForgotten(said.scope)) continue
      const listed = this.#listed(said.key, said.scope, name, sessions)
      if (listed === null || (type !== undefined && listed.type !== type) || (tag !== undefined && !listed.tags.includes(tag))) continue
      if (from === null || listed.at >= from) out.push(listed)
    }
    return out.sort((a, b) => byCodePoints(a.key, b.key) || byCodePoints(a.scope, b.scope))
  }

  #listed(key: string, scope: string, name: string, sessions: boolean): Listed | null {
    const view = this.#view(name)
    if (view.shown === null && view.notFetched.length === 0) return null
    const file = view.shown === null ? { fields: [['description', 'not fetched'] as const], body: '' } : headOf(view.shown)
    if (!sessions && isSessionPart(key, fieldOf(file, 'type'), fieldOf(file, 'session'))) return null
    const { device, at } = this.#writerOf(name, view)
    return {
      key,
      scope,
      name: fieldOf(file, 'name') || key,
      description: fieldOf(file, 'description'),
      type: fieldOf(file, 'type'),
      tags: readTags(fieldOf(file, 'tags')),
      created: fieldOf(file, 'created'),
      updated: fieldOf(file, 'updated'),
      device,
      label: this.#label(device),
      at,
      merged: view.merged,
      conflicts: view.conflicts.length + view.others.length,
      own: true,
      here: view.shown !== null
    }
  }

  /** The memories that fit a question, the best first, of one scope. Scores say something beside each other only. */
  recall(query: string, { scope = '', limit = 10, type, tag, since }: { scope?: string; limit?: number; type?: string; tag?: string; since?: string } = {}): Recall {
    if (split(query).length === 0) throw new MemoryError('usage', 'there is no word in the query, so nothing can be looked for')
    const asked = { scope, ...(type === undefined ? {} : { type }), ...(tag === undefined ? {} : { tag }), ...(since === undefined ? {} : { since }) }
    const all = this.list(asked)
    const today = Math.floor(this.#replica.world.now() / DAY_MS)
    const documents = all.filter(one => one.here).map(one => this.#document(one, today))
    const ranked = new Ranking(documents, this.#counted).rank(query, today)
    const hits = ranked.slice(0, limit).map(({ id, score, parts }): Hit => ({ reading: this.#shown(id, scope), score, parts }))
    return { hits, searched: documents.length, notFetched: all.length - documents.length }
  }

  /** What is searched of a memory; the same object as long as nothing of it changed. */
  #document(one: Listed, today: number): Document {
    const name = entryName(one.key, one.scope)
    const entry = this.#replica.entry(name)
    const held = this.#documents.get(entry)
    if (held !== undefined && held.today === today) return held.document
    const file = headOf(this.#view(name).shown as Bytes)
    const written = one.at > 0 ? Math.floor(one.at / DAY_MS) : null
    const said = dayOf(fieldOf(file, 'updated')) ?? dayOf(fieldOf(file, 'created'))
    const at = said !== null && written !== null ? Math.min(said, written) : (said ?? written)
    const confidence = /^[0-9.]+$/.test(fieldOf(file, 'confidence')) ? Number(fieldOf(file, 'confidence')) : Number.NaN
    const until = dayOf(fieldOf(file, 'expires'))
    const salience = worthOf({
      type: one.type,
      tags: one.tags.length,
      important: ['true', 'yes', '1'].includes(fieldOf(file, 'important').toLowerCase()),
      confidence: confidence >= 0 && confidence <= 1 ? confidence : null,
      decay: fieldOf(file, 'decay'),
      idleDays: at === null ? 0 : today - at,
      expired: until !== null && until < today
    })
    const header = [one.key, fieldOf(file, 'name'), one.description, ...one.tags, fieldOf(file, 'category')].join(' ')
    const document = { id: one.key, text: file.body, header, at, salience }
    this.#documents.set(entry, { document, today })
    return document
  }

  /** Memories with texts that are not shown. */
  conflicts({ scope = null }: { scope?: string | null } = {}): Unsettled[] {
    const out: Unsettled[] = []
    for (const [name, entry] of this.#replica.entries) {
      const said = readName(name)
      if (said.kind !== 'm' || (scope !== null && said.scope !== scope)) continue
      const view = this.#view(name)
      const all = [...view.conflicts, ...view.hidden, ...view.others]
      if (all.length === 0 && view.unheeded.length === 0) continue
      const copies = all.flatMap(one => this.#copy(said.key, said.scope, name, one))
      const shown = view.shown === null ? null : this.#reading(said.key, said.scope, name, view)
      const token = [...new Set([...view.dots, ...view.unheeded, ...copies.flatMap(one => one.token)])].filter(dot => Object.hasOwn(entry, dot))
      out.push({ key: said.key, scope: said.scope, shown, copies, token, forgotten: view.forgotten })
    }
    return out.sort((a, b) => byCodePoints(a.scope, b.scope) || byCodePoints(a.key, b.key))
  }

  /** Events in order; of one scope, of days between two dates (both included), of one type. */
  timeline({ scope = '', from, to, type }: { scope?: string; from?: string; to?: string; type?: string } = {}): TimelineEvent[] {
    const segments: { dev: string; data: Bytes }[] = []
    for (const [name, entry] of this.#replica.entries) {
      const said = readName(name)
      if (said.kind !== 't' || said.scope !== scope) continue
      const fetch = fetcherOf(name, entry, this.#replica.opened)
      for (const value of Object.values(entry)) segments.push({ dev: said.dev, data: fetch(value.body ?? '') ?? new Uint8Array() })
    }
    const day = (event: TimelineEvent): string => new Date(instant(event.ts) ?? 0).toISOString().slice(0, 10)
    return timelineOf(segments).filter(
      event => (type === undefined || event.type === type) && (from === undefined || day(event) >= from) && (to === undefined || day(event) <= to)
    )
  }

  /** The scopes that have a card and are not forgotten. */
  scopes(): Scope[] {
    const out: Scope[] = []
    const counts = new Map<string, number>()
    for (const one of this.list({ scope: null })) counts.set(one.scope, (counts.get(one.scope) ?? 0) + 1)
    for (const [name, entry] of this.#replica.entries) {
      const said = readName(name)
      if (said.kind !== 'c') continue
      const { card } = cardOf(entry, fetcherOf(name, entry, this.#replica.opened))
      if (card !== null) out.push({ token: said.scope, title: card.title, kind: card.kind, ids: card.ids, into: card.into, memories: counts.get(said.scope) ?? 0 })
    }
    return out.sort((a, b) => byCodePoints(a.token, b.token))
  }

  members(): Member[] {
    const { ring, device, isMine } = this.#replica
    const all = ring === null ? [] : [...ring.said.members.values()]
    return all.map(({ id, label, kind, role }) => ({ id, label, kind, role, mine: isMine(id), thisDevice: id === device.id }))
  }

  /** How this memory is here. `unpublished`: something of it is where no other device finds it. */
  async status(): Promise<Status> {
    const { kept, device } = this.#replica
    const all = this.list({ scope: null, sessions: true })
    const events = ['', ...this.scopes().map(one => one.token)].reduce((sum, scope) => sum + this.timeline({ scope }).length, 0)
    const record = this.#replica.record(ipnsName(device.signer.public))
    const root = record === null ? null : (targetOf(await readRecord(ipnsName(device.signer.public), record))?.cid ?? null)
    const isOut = root !== null && kept.announcing === null && Object.values(kept.placed).includes(root)
    return {
      memories: all.length,
      events,
      conflicts: this.conflicts().length,
      notFetched: all.filter(one => !one.here).length,
      unpublished: !isOut || kept.n > (kept.seen[device.id]?.n ?? 0)
    }
  }

  /** Where it is read and kept, and what each place can do. */
  places(): { readonly name: string; readonly can: readonly string[] }[] {
    return this.#providers.map(({ name, reader, keeper, names }) => ({
      name,
      can: [...(reader || keeper ? ['reads'] : []), ...(keeper ? ['keeps what is sent'] : []), ...(names ? ['tells where names lead'] : [])]
    }))
  }

  /** MEMORY.md of a scope: the index that an agent loads. */
  index({ scope = '' } = {}): string {
    return renderIndex(
      this.list({ scope }).map(({ key, name, description, type }) => ({ key, name: name === key ? '' : name, description, type })),
      this.conflicts({ scope }).flatMap(one => one.copies.filter(copy => copy.own).map(copy => ({ key: one.key, file: copy.file, name: copy.fields.name ?? '', description: copy.fields.description ?? '' })))
    )
  }

  // --- writing ---

  /** Write a memory; durable when this is done. What is not given stays as it was shown. -> what is shown then. */
  async write(key: string, body?: string, how: WriteHow = {}): Promise<Reading> {
    const { scope = '', seen } = how
    const name = entryName(key, scope)
    const named = { name: how.name, description: how.description, type: how.type, tags: how.tags && writeTags(how.tags) }
    const given = new Map(Object.entries({ ...named, ...how.fields }).filter((one): one is [string, string] => one[1] !== undefined))
    if (body === undefined && given.size === 0) throw new MemoryError('usage', 'nothing to write', 'Give a text, or a field.')
    await this.#written(async change => {
      const { shown, dots } = this.#before(change, name, seen)
      const old = shown === null ? { fields: [], body: '' } : parseFile(shown)
      const made = withFields(old, given, body ?? old.body)
      if (shown !== null && made === old) return
      const today = new Date(this.#replica.world.now()).toISOString().slice(0, 10)
      const dates = new Map([
        ['created', fieldOf(made, 'created') || today],
        ['updated', given.get('updated') ?? today]
      ])
      await this.#put(change, name, utf8(renderFile(withFields(made, dates, made.body))), dots)
    })
    return this.#shown(key, scope)
  }

  /** Write the whole file, header and all, exactly this text. */
  async writeText(key: string, text: string, { scope = '', seen }: { scope?: string; seen?: Seen } = {}): Promise<Reading> {
    const name = entryName(key, scope)
    await this.#written(async change => this.#put(change, name, utf8(text), this.#before(change, name, seen).dots))
    return this.#shown(key, scope)
  }

  /** Forget a memory on every device, what is written there at once included; with `seen` only what its caller was shown. False when there is none. */
  async forget(key: string, { scope = '', reason = '', seen }: { scope?: string; reason?: string; seen?: Seen } = {}): Promise<boolean> {
    const name = entryName(key, scope)
    return this.#written(async change => {
      const entry = change.entry(name)
      const dots = seen === undefined ? Object.keys(entry) : tokenOf(seen)
      if (Object.keys(entry).length === 0 || this.#view(name).forgotten) return false
      if (!dots.every(dot => Object.hasOwn(entry, dot))) throw replaced(name)
      await change.forget(name, dots)
      const about = { key, ...(reason === '' ? {} : { reason }) }
      if (this.#isForgotten(scope)) await change.note('forgot', { ...about, scope })
      else await change.note('forgot', about, scope)
      return true
    })
  }

  /** Settle a conflict: `text`, a whole file, replaces all that `seen` names; without one what is shown stays. */
  async resolve(key: string, text: string | null, { scope = '', seen }: { scope?: string; seen: Seen }): Promise<Reading | null> {
    const name = entryName(key, scope)
    const dots = tokenOf(seen)
    await this.#written(async change => {
      if (Object.keys(change.entry(name)).length === 0) throw new MemoryError('not found', `there is no memory ${key}`)
      if (text !== null) return this.#put(change, name, utf8(text), dots)
      const view = this.#view(name)
      if (view.forgotten) return void (await change.forget(name, dots))
      if (view.shown === null) throw new MemoryError('not found', `${key} has no text to keep`)
      return this.#put(change, name, view.shown, dots)
    })
    return this.read(key, { scope })
  }

  /** A person's word that a text of others is their own from now on. Never to be called for a model. */
  async promote(key: string, file: string, { scope = '' } = {}): Promise<Reading> {
    const name = entryName(key, scope)
    await this.#written(async change => {
      const view = this.#view(name)
      const copy = view.others.find(one => one.file === file)
      const text = copy === undefined ? null : this.#replica.view(name).text(copy.body)
      if (copy === undefined || text === null) throw new MemoryError('not found', `${key} has no text of others ${file} on this device`)
      await change.put(name, text, [...view.dots, ...copy.dots], { promoted: true })
    })
    return this.#shown(key, scope)
  }

  /** Add an event to the timeline. */
  note(type: string, data: Readonly<Record<string, unknown>> = {}, { scope = '' } = {}): Promise<TimelineEvent> {
    checkScope(scope)
    return this.#written(change => change.note(type, data, scope))
  }

  // --- out and in ---

  /** One scope as one JSON text (`memory/0.1`), for any other program. */
  export({ scope = '' } = {}): string {
    const files = new Map<string, string>()
    const others: Text[] = []
    for (const one of this.list({ scope, sessions: true })) {
      const reading = one.here ? this.read(one.key, { scope }) : null
      if (reading !== null) files.set(one.key, reading.text)
    }
    for (const one of this.conflicts({ scope })) others.push(...one.copies.filter(copy => !copy.own).map((copy): Text => [one.key, copy.text]))
    return writeBlob(files, this.timeline({ scope }), this.index({ scope }), others)
  }

  /** Take in such a text. `merge`: what is here stays shown, and other texts come beside it; `replace`: the incoming text supersedes it. */
  async import(blob: string, { scope = '', strategy = 'merge' as 'merge' | 'replace' } = {}): Promise<Imported> {
    checkScope(scope)
    const given = readBlob(blob)
    const problems = [...given.problems]
    let [added, kept, same] = [0, 0, 0]
    const events = await this.#written(async change => {
      const lay = async (key: string, text: string, isFirst: boolean, of: string): Promise<void> => {
        const name = entryName(key, scope)
        const entry = change.entry(name)
        const body = utf8(text)
        const hash = hex(sha256(body))
        const isHere = Object.values(entry).some(value => value.body === hash)
        const isNew = Object.keys(entry).length === 0
        try {
          if (isNew && of === '') {
            await change.put(name, body, [])
            added++
          } else if (isFirst && strategy === 'replace' && !(isHere && this.#replica.view(name).own.dots.some(dot => entry[dot]?.body === hash))) {
            await change.put(name, body, this.#view(name).dots)
            added++
          } else if (isHere) same++
          else {
            await change.keepBeside(name, body, of)
            kept++
          }
        } catch (error) {
          if (!(error instanceof MemoryError) || error.kind !== 'limit') throw error
          problems.push(`${key} was left out: ${error.message}`)
        }
      }
      for (const [key, text] of given.files) await lay(key, text, true, '')
      for (const [key, text] of given.more) await lay(key, text, false, '')
      for (const [key, text] of given.others) await lay(key, text, false, 'foreign')
      const here = this.timeline({ scope })
      const known = new Set([...here.map(foreignId), ...here.map(lineOf)])
      const news = given.events.filter(event => !known.has(lineOf(event)) && !known.has(foreignId(event)))
      for (const event of news) await change.lineOfOthers({ ...event, id: foreignId(event) }, scope)
      return news.length
    })
    return { added, kept, same, events, problems }
  }

  // --- sync ---

  /** Bring what others wrote here, and what was written here to the providers. */
  async sync(how: SyncHow = {}): Promise<SyncReport> {
    try {
      return await sync(this.#replica, this.#providers, how)
    } finally {
      this.#tell()
    }
  }

  /** What was published last by this device as a CAR, for where nothing can be sent to: to be saved and put wherever blocks are kept. Null before the first sync. */
  outbox(): { root: string; car: Bytes } | null {
    const root = this.#replica.kept.commit?.root
    if (root === undefined) return null
    const { blocks } = this.#replica
    const all = [...treeOf(root, blocks)].reverse().map((cid): Block => [cid, blocks.peek(cid) as Bytes])
    return { root, car: writeCar({ roots: [root], blocks: all }) }
  }

  /** What this device shows to be let in (a QR code, or text to copy), with six words to compare; no secret is in it. */
  static async request(device: Device, pointer: Pointer): Promise<{ text: string; words: string[] }> {
    const tag = fromHex(pointer.vault, 16)
    const one = await enrolleeOf(device.signer, device.box.public, device.label, tag)
    return { text: `${REQUEST}${base64url(enrolmentRequest(tag, one))}`, words: fingerprint(tag, one.sign, one.box, wordlist) }
  }

  /** Where another device finds this memory: what it needs to ask to be let in. No secret is in it. */
  pointer(): Pointer {
    const { ring, kept } = this.#replica
    need(ring !== null, 'none', 'this device has not read its memory yet')
    return { vault: hex(ring.tag), anchor: kept.anchor }
  }

  /** What a request says, and the six words that its device shows too. */
  async asked(text: string): Promise<{ label: string; words: string[] }> {
    const { ring } = this.#replica
    need(ring !== null, 'none', 'this device has not read its memory yet')
    const one = await readRequest(requestBytes(text), ring.tag)
    return { label: one.label, words: fingerprint(ring.tag, one.sign, one.box, wordlist) }
  }

  /** Let a device in that showed this request, after a person compared the words. `root`: the wallet's keys, or those of the words. */
  async letIn(text: string, root: RootKeys): Promise<SyncReport> {
    const { ring } = this.#replica
    need(ring !== null, 'none', 'this device has not read its memory yet')
    const one = await readRequest(requestBytes(text), ring.tag)
    return this.sync({ root, enrollee: { ...one, anchor: null } })
  }

  // --- inside ---

  #view(name: string): OwnView {
    return this.#replica.view(name).own
  }

  #isForgotten(scope: string): boolean {
    return scope !== '' && Object.values(this.#replica.entry(`c/${scope}`)).some(value => value.kind === 'forgotten')
  }

  #label(device: string): string {
    const { ring } = this.#replica
    const family = ring?.said.families.get(device) ?? device
    return ring?.said.members.get(family)?.label ?? ring?.said.members.get(device)?.label ?? device
  }

  #writerOf(name: string, view: { readonly dots: readonly string[]; readonly notFetched: readonly string[] }): { device: string; at: number } {
    const entry = this.#replica.entry(name)
    const dots = view.dots.length > 0 ? view.dots : view.notFetched
    const newest = dots.reduce<[string, Value] | null>((best, dot) => {
      const value = entry[dot]
      return value !== undefined && (best === null || value.h > best[1].h) ? [dot, value] : best
    }, null)
    return newest === null ? { device: '', at: 0 } : { device: newest[0].slice(0, 16), at: clockMs(newest[1].h) }
  }

  #reading(key: string, scope: string, name: string, view: OwnView): Reading {
    const { device, at } = this.#writerOf(name, view)
    const copies = [...view.conflicts, ...view.others].flatMap(one => one.file ?? [])
    return { ...textParts(view.shown as Bytes), key, scope, token: view.dots, merged: view.merged, conflicts: copies, device, label: this.#label(device), at, own: true }
  }

  #copy(key: string, scope: string, name: string, copy: ViewCopy): Copy[] {
    const data = this.#replica.view(name).text(copy.body)
    const entry = this.#replica.entry(name)
    if (data === null) return []
    const isOwn = isOwnWord(this.#replica.isMine)
    const own = copy.dots.some(dot => entry[dot] !== undefined && isOwn(dot, entry[dot]))
    const { device, at } = this.#writerOf(name, { dots: copy.dots, notFetched: [] })
    return [{ ...textParts(data), key, scope, file: copy.file ?? `${key} (${copy.body.slice(0, 16)})`, token: copy.dots, device, label: this.#label(device), at, own }]
  }

  /** The text behind what a writer has seen, and the dots that its write replaces. */
  #before(change: Writing, name: string, seen: Seen | undefined): { shown: Bytes | null; dots: readonly string[] } {
    const view = this.#view(name)
    if (seen === undefined) {
      if (view.shown === null && view.notFetched.length > 0) throw new MemoryError('not found', `${name.slice(2)} is known but its text is not fetched yet`, 'Try again after a sync.')
      return { shown: view.shown, dots: view.dots }
    }
    const dots = tokenOf(seen)
    const text = (seen as { text?: unknown }).text
    if (typeof text === 'string') return { shown: utf8(text), dots }
    const entry = change.entry(name)
    if (!dots.every(dot => Object.hasOwn(entry, dot))) throw replaced(name)
    const some = Object.fromEntries(Object.entries(entry).filter(([dot]) => dots.includes(dot)))
    return { shown: this.#replica.viewOfSome(name, some).own.shown, dots }
  }

  async #put(change: Writing, name: string, data: Bytes, dots: readonly string[]): Promise<void> {
    const { ctx } = readName(name)
    if (data.length > MOST_FILE) throw new MemoryError('limit', `${ctx} would have ${data.length} bytes, at most ${MOST_FILE} are allowed`, 'Split it into two memories.')
    parseFile(data)
    const entry = change.entry(name)
    const values = Object.entries(entry)
    if (values.length === 1 && dots.includes(values[0]?.[0] as string) && values[0]?.[1].body === hex(sha256(data))) return
    const isOwn = isOwnWord(this.#replica.isMine)
    if (values.some(([dot, value]) => value.kind === 'forgotten' && isOwn(dot, value) && !dots.includes(dot))) {
      throw new MemoryError('changed', `${ctx} was forgotten meanwhile, so nothing was written`, 'To have it again, write it without what was read before.')
    }
    await change.put(name, data, dots)
  }

  #shown(key: string, scope: string): Reading {
    const reading = this.read(key, { scope })
    need(reading !== null, 'missing', `${key} was written and is not shown`)
    return reading
  }

  async #written<T>(work: (change: Writing) => Promise<T>): Promise<T> {
    try {
      return await writing(this.#replica, work)
    } finally {
      this.#tell()
    }
  }

  async #refresh(): Promise<void> {
    await this.#replica.keeping.exclusively('write', () => this.#replica.refresh())
    this.#tell()
  }

  #tell(): void {
    const { revision } = this.#replica
    if (revision === this.#told) return
    this.#told = revision
    for (const heard of this.#heard) heard({ revision })
  }
}

export { BLOB_VERSION }

const REQUEST = 'ipfsmem:request:'

function requestBytes(text: string): Bytes {
  const given = text.trim()
  if (!given.startsWith(REQUEST)) throw new MemoryError('usage', 'this is no request of a device', `It begins with ${REQUEST}`)
  return fromBase64url(given.slice(REQUEST.length))
}

function checkScope(scope: string): void {
  if (scope !== '' && !isScope(scope)) throw new MemoryError('usage', `${scope} is no name of a scope`, 'Small letters, digits, - and _, at most 64.')
}

function entryName(key: string, scope: string): string {
  if (!isKey(key)) throw new MemoryError('usage', `${key} is no key of a memory`, 'Small letters, digits, - and _, at most 64.')
  checkScope(scope)
  return scope === '' ? `m/${key}` : `m/${scope}/${key}`
}

const DAY_MS = 86_400_000

/** The day that an ISO 8601 date or instant begins with, counted from 1970. */
function dayOf(text: string): number | null {
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? instant(text.slice(0, 10)) : null
  return at === null ? null : at / DAY_MS
}

const replaced = (name: string): MemoryError => new MemoryError('changed', `what was read of ${name.slice(2)} was replaced meanwhile`, 'Read it again.')

const tokenOf = (seen: Seen): Token => ('token' in seen ? seen.token : seen)

const headOf = (data: Bytes): MemoryFile => unlessRefused(() => parseFile(data)) ?? { fields: [], body: '' }

function textParts(data: Bytes): { text: string; body: string; fields: Record<string, string> } {
  const text = unlessRefused(() => fromUtf8(data)) ?? new TextDecoder().decode(data)
  const file = unlessRefused(() => parseFile(data)) ?? { fields: [], body: text }
  return { text, body: file.body, fields: Object.fromEntries(file.fields) }
}

/** A file with some fields set, or taken away where the new value is empty; the very same one when nothing changes. */
function withFields(file: MemoryFile, changes: ReadonlyMap<string, string>, body: string): MemoryFile {
  const fields = new Map(file.fields)
  for (const [name, value] of changes) {
    if (value === '') fields.delete(name)
    else fields.set(name, value)
  }
  const made = { fields: [...fields], body: body.replace(/\n+$/, '') }
  return JSON.stringify(made) === JSON.stringify({ fields: file.fields, body: file.body }) ? file : made
}
