/**
 * An open vault: the interface for apps and pages, with the names of every other interface of ipfsmem.
 *
 * It only translates: `device/shown` decides what is shown, `device/writing` what a write replaces, `sync/` what a sync does, and `core/`
 * what a text means. It uses no DOM; storage, requests, keys, time and randomness are passed in.
 */

import { BLOB_VERSION, type Text, writeBlob } from './core/blob.ts'
import { base64url, type Bytes, fromBase64url, fromHex, hex, need, sha256, utf8 } from './core/bytes.ts'
import { writeCar } from './core/car.ts'
import { ipnsName } from './core/cid.ts'
import { renderIndex } from './core/index.ts'
import { readRecord, targetOf } from './core/ipns.ts'
import { splitConflictName } from './core/keys.ts'
import { MOST_FILE } from './core/limits.ts'
import { editFile, refuseOverUnclosed } from './core/header_edit.ts'
import { fieldOf, type MemoryFile, parseFile, writeTags } from './core/memory_file.ts'
import type { Ring } from './core/ring.ts'
import type { Assigning } from './core/scope_tree.ts'
import { readName } from './core/state.ts'
import { instant, type TimelineEvent, unionOfScopes } from './core/timeline.ts'
import { isOwnWord, type ShownView } from './core/views.ts'
import type { RootKeys } from './core/wallet.ts'
import type { Device, Environment } from './device/device.ts'
import { defaultEnvironment } from './device/device.ts'
import { localDate } from './device/days.ts'
import { needObject, needOneOf, needText, needTexts } from './device/arguments.ts'
import { MemoryError } from './device/errors.ts'
import { Finding, type RecallHow } from './device/finding.ts'
import type { PromoteHow } from './device/promoting.ts'
import { Replica } from './device/replica.ts'
import type { AllSessions } from './device/sessions.ts'
import { checkScope, entryName, notFetched, Shown, tokenHash } from './device/shown.ts'
import type { Strategy } from './device/importing.ts'
import { writing, type Writing } from './device/writing.ts'
import type { Block as ContextBlock, BlockHow } from './recall/context.ts'
import type { Change, Dream, GraphPart, History, Imported, Listed, Member, Node, Past, Reading, Recall, Scope, Scopes, Seen, Session, SessionHit, SessionLine, Status, Token, Undoing, Conflict, Why, WriteHow } from './results.ts'
import type { DeviceStorage } from './store/device_storage.ts'
import type { BeginHow } from './sync/beginning.ts'
import type { Block, Provider } from './sync/provider.ts'
import { treeOf } from './sync/fetching.ts'
import { type Pointer, sync, type SyncHow, type SyncReport } from './sync/syncing.ts'

export type * from './results.ts'
export type { Block as ContextBlock, BlockHow, Layout } from './recall/context.ts'

export type Opening = {
  readonly device: Device
  readonly storage: DeviceStorage
  readonly providers?: readonly Provider[]
  readonly environment?: Environment
  /** The keys of the wallet or of a recovery phrase: required if this device is not a member yet. */
  readonly root?: RootKeys | null
  /** Where to find a vault that adds this device by its request. */
  readonly pointer?: Pointer | null
  /** Called with each step of a first sync. */
  readonly progress?: (step: string) => void
  /**
   * Called with the vault once the result of a first sync can be read and before it is stored; storing starts when the promise resolves.
   * Writes wait until it is stored.
   */
  readonly shown?: (memory: Memory) => Promise<void>
}

/** A vault to create. */
export type Founding = Pick<Opening, 'device' | 'storage' | 'providers' | 'environment'> & BeginHow

export class Memory {
  readonly #replica: Replica
  #providers: readonly Provider[]
  readonly #heard = new Set<(change: Change) => void>()
  readonly #stop: () => void
  #announced = -1
  readonly #look: Shown
  readonly #finding: Finding
  /** The first sync: writes wait for its end. */
  #first: Promise<unknown> = Promise.resolve()

  private constructor(replica: Replica, providers: readonly Provider[]) {
    this.#replica = replica
    this.#look = new Shown(replica)
    this.#finding = new Finding(this.#look)
    this.#providers = providers
    this.#stop = replica.storage.listen(() => void this.#refresh())
  }

  /** Open the vault stored on this device; without one, find the vault of these keys and enrol this device. */
  static async load({ device, storage, providers = [], environment = defaultEnvironment, root = null, pointer = null, progress, shown }: Opening): Promise<Memory> {
    const memory = new Memory(new Replica(device, storage, environment), providers)
    await Promise.all([memory.#finding.load(), storage.exclusively('write', () => memory.#replica.refresh())])
    const { ring, entries } = memory.#replica
    // The whole list is about to be shown: open objects in other threads where possible.
    if (ring !== null && environment.offloading !== undefined) await memory.#replica.openAhead(ring, entries)
    if (ring === null || root !== null) {
      const how = { root, pointer, ...(progress ? { progress } : {}), ...(shown ? { shown: () => shown(memory) } : {}) }
      memory.#first = memory.#synced(providers, how)
      await memory.#first
    }
    return memory
  }

  /**
   * Create a vault with this device as the first one: of a wallet that signed twice, of a recovery phrase, or of both. It is published if
   * providers are given.
   */
  static async create({ device, storage, providers = [], environment = defaultEnvironment, root, recovery }: Founding): Promise<Memory> {
    const memory = new Memory(new Replica(device, storage, environment), providers)
    // Loaded only when a vault is created.
    const [{ begin }] = await Promise.all([import('./sync/beginning.ts'), memory.#finding.load()])
    const first = await begin(memory.#replica, providers, { root, recovery })
    await memory.sync({ root: first })
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

  /** Subscribe to changes; returns the function that unsubscribes. A change has no content: read again what is shown. */
  subscribe(heard: (change: Change) => void): () => void {
    this.#heard.add(heard)
    return () => void this.#heard.delete(heard)
  }

  // --- reading ---

  /** Return one memory as it is shown; null if absent. `counts`: record the read as a use, which slows fading. */
  read(key: string, { scope = '', counts = true }: { scope?: Scopes; counts?: boolean } = {}): Reading | null {
    const found = this.#look.read(key, this.#look.stack(scope))
    if (counts && found !== null) this.#look.replica.count([entryName(key, found.scope)])
    return found
  }

  /**
   * List the shown memories, by key: of a scope with the scopes that redirect to it, of several scopes, or of each scope (`scope: null`).
   */
  list({ scope = '', ...filters }: { scope?: Scopes | null; type?: string; tag?: string; since?: string; sessions?: boolean } = {}): Listed[] {
    return this.#look.list(scope === null ? null : this.#look.stack(scope), filters)
  }

  /** Return the memories that match a query, best first. Scores compare only within one result. */
  recall(query: string | null, { scope = '', ...how }: RecallHow & { scope?: Scopes } = {}): Recall {
    if (query !== null) needText('query', query)
    return this.#finding.recall(query, this.#look.stack(scope), how)
  }

  /** Return the rank of one memory for a query and the parts of its score, or why it is not found. */
  why(key: string, query: string, { scope = '' }: { scope?: Scopes } = {}): Why {
    needText('query', query)
    return this.#finding.why(key, query, this.#look.stack(scope))
  }

  /**
   * Return the context for a model: the index of the own memories of a scope and of the default scope, and with a query the matching texts;
   * fenced, at most `maxTokens`. `preview`: a person looks at it, so no use is recorded.
   */
  context({ scope = '', query = null, preview = false, ...how }: BlockHow & { scope?: Scopes; query?: string | null; preview?: boolean } = {}): ContextBlock {
    if (query !== null) needText('query', query)
    return this.#finding.context(scope, query, how, preview)
  }

  /** List the revisions of a memory that this device finds, newest first. */
  async history(key: string, { scope = '' }: { scope?: string } = {}): Promise<History> {
    return (await import('./device/past.ts')).historyOf(this.#look, key, scope)
  }

  /** Return an earlier text in full. */
  async past(key: string, which: Past, { scope = '' }: { scope?: string } = {}): Promise<string> {
    const { pastText } = await import('./device/past.ts')
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(pastText(this.#look, key, scope, which).data)
  }

  /** List the memories with alternatives. */
  conflicts({ scope = null }: { scope?: string | null } = {}): Conflict[] {
    return this.#look.conflicts(scope)
  }

  /** Return events in order: of a scope with the scopes that redirect to it, of days between two dates (inclusive), of one type. */
  timeline({ scope = '', from, to, type }: { scope?: Scopes; from?: string; to?: string; type?: string } = {}): TimelineEvent[] {
    const day = (event: TimelineEvent): string => new Date(instant(event.ts) ?? 0).toISOString().slice(0, 10)
    const scopes = this.#look.stack(scope).filter(one => !this.#look.isForgotten(one))
    return unionOfScopes(scopes.map(one => this.#look.events(one))).filter(
      event => (type === undefined || event.type === type) && (from === undefined || day(event) >= from) && (to === undefined || day(event) <= to)
    )
  }

  /** List the scopes that have a card and are not forgotten. */
  scopes(): Scope[] {
    return this.#look.scopes()
  }

  members(): Member[] {
    const { ring, device, isMine, kept } = this.#replica
    const heard = new Map(kept.log.map(one => [one.dev, one.at]))
    const all = ring === null ? [] : [...ring.said.members.values()]
    return all.map(({ id, label, kind, role }) => ({ id, label, kind, role, mine: isMine(id), thisDevice: id === device.id, heard: heard.get(id) ?? null }))
  }

  /** Return the state of this vault here. `unpublished`: some changes are on this device only. */
  async status(): Promise<Status> {
    const { kept, device } = this.#replica
    const all = this.list({ scope: null, sessions: true })
    const events = ['', ...this.scopes().map(one => one.token)].reduce((sum, scope) => sum + this.#look.events(scope).length, 0)
    const record = this.#replica.record(ipnsName(device.signer.public))
    const root = record === null ? null : (targetOf(await readRecord(ipnsName(device.signer.public), record))?.cid ?? null)
    const isOut = root !== null && kept.announcing === null && Object.values(kept.placed).includes(root)
    return {
      memories: this.list({ scope: null }).length,
      events,
      conflicts: this.conflicts().length,
      notFetched: all.filter(one => !one.here).length,
      unpublished: !isOut || kept.n > (kept.seen[device.id]?.n ?? 0)
    }
  }

  /** List the providers, each with its capabilities. */
  providers(): { readonly name: string; readonly can: readonly string[] }[] {
    return this.#providers.map(({ name, reader, store, names }) => ({
      name,
      can: [...(reader || store ? ['reads'] : []), ...(store ? ['stores uploads'] : []), ...(names ? ['tells where names lead'] : [])]
    }))
  }

  /** Return the MEMORY.md of a scope: the index that an agent loads, without texts of others. */
  index({ scope = '' } = {}): string {
    checkScope(scope)
    // A text hidden by a forget is not a conflict; of two copies with one file name, only one has a file.
    const copies = this.conflicts({ scope }).flatMap(one => (one.forgotten ? [] : one.copies.filter(copy => copy.own && splitConflictName(copy.file) !== null)))
    return renderIndex(
      this.#look.list([scope]).filter(one => one.own).map(({ key, name, description, type }) => ({ key, name: name === key ? '' : name, description, type })),
      copies.map(({ key, file, fields }) => ({ key, file, name: fields.name ?? '', description: fields.description ?? '' }))
    )
  }

  // --- sessions ---

  /**
   * List the stored sessions of a scope, last written first: at most `limit`, and the number of older ones. Sessions stored on one other
   * device only are not included.
   */
  async sessions({ scope = '', limit }: { scope?: string; limit?: number } = {}): Promise<{ sessions: SessionLine[]; older: number }> {
    return (await this.#sessions(scope)).list(limit)
  }

  /** Return one session with its `last` messages (default 100); null if absent. */
  async session(session: string, { scope = '', last = 100 } = {}): Promise<Session | null> {
    return (await this.#sessions(scope)).read(session, last)
  }

  /** Return the messages that match a query, best first. */
  async searchSessions(query: string, { scope = '', limit = 10 } = {}): Promise<SessionHit[]> {
    return (await this.#sessions(scope)).search(query, limit)
  }

  /** Return a whole session as Markdown, or its messages in their original form as JSON. */
  async exportSession(session: string, { scope = '', format = 'markdown' as 'markdown' | 'json' } = {}): Promise<string> {
    const text = (await this.#sessions(scope)).text(session, format)
    if (text === null) throw new MemoryError('not found', `there is no session ${session.slice(0, 60)}`)
    return text
  }

  /**
   * Approve the imported messages of a session as the person's own; returns their number. Never call it for a model. `seen`: of the read
   * session.
   */
  async approveSession(session: string, { scope = '', seen }: { scope?: string; seen?: string } = {}): Promise<number> {
    return this.#written(async change => (await this.#sessions(scope)).approve(change, session, seen))
  }

  /**
   * Forget a session on every device; with `seen`, only if it is unchanged. False if absent. Messages that another device adds concurrently
   * start it again.
   */
  async deleteSession(session: string, { scope = '', reason = '', seen }: { scope?: string; reason?: string; seen?: string } = {}): Promise<boolean> {
    await this.#sessions(scope)
    return this.#written(async change => (await this.#sessions(scope)).forget(change, session, reason, seen))
  }

  // --- graph ---

  /** List the created and the related entities, by key; or those that contain all `words`. */
  async entities({ scope = '', ...how }: { scope?: string; words?: string; kind?: string; limit?: number } = {}): Promise<Node[]> {
    const { entitiesIn, graphOf } = await import('./device/graph.ts')
    return entitiesIn(graphOf(this.#look, this.#look.stack(this.#led(scope))), how)
  }

  /** Return entities and the relations among them: all, or those at most `depth` relations away from an `entity`, nearest first. */
  async graph({ scope = '', ...how }: { scope?: string; entity?: string; depth?: number; limit?: number } = {}): Promise<GraphPart> {
    const { graphOf, partOf } = await import('./device/graph.ts')
    return partOf(graphOf(this.#look, this.#look.stack(this.#led(scope))), how)
  }

  // --- dreams ---

  /** List the dreams of all devices of this person, last first. A proposal is only on the device that made it. */
  async dreams({ scope = '' } = {}): Promise<Dream[]> {
    const { Dreams } = await import('./device/dreams.ts')
    return new Dreams(this.#look, this.#led(scope)).list()
  }

  /** Undo a dream, except for memories that changed since. */
  async undoDream(id: string, { scope = '' } = {}): Promise<Undoing> {
    const { Dreams } = await import('./device/dreams.ts')
    return this.#written(change => new Dreams(this.#look, this.#led(scope)).undo(change, id))
  }

  // --- writing ---

  /**
   * Write a memory; durable when the promise resolves. Omitted (or null) fields keep their shown values. Returns the memory as shown. A
   * write to a scope that redirects goes to its target. The text may be among the fields: `write(key, { body, name, type })`.
   */
  async write(key: string, first?: string | null | (WriteHow & { readonly body?: string }), second: WriteHow = {}): Promise<Reading> {
    if (first !== undefined && first !== null && typeof first !== 'string') needObject('body', first, "write(key, 'text', { name, type }), or write(key, { body, name, type }).")
    needObject('the options of write', second)
    const { body, ...how } = typeof first === 'object' && first !== null ? { ...second, ...first } : { ...second, body: first ?? undefined }
    if (body !== undefined) needText('body', body)
    const { seen } = how
    const changes = writtenFields(how)
    if (body === undefined && changes.size === 0) throw new MemoryError('usage', 'nothing to write', 'Give a text, or a field.')
    const scope = this.#target(key, how.scope)
    const name = entryName(key, scope)
    await this.#written(async change => {
      const { shown, dots } = this.#before(change, key, scope, seen)
      if (shown === null && body === undefined && !this.#look.view(name).own) {
        throw new MemoryError('usage', `${key} is pending, so its parts cannot become your text`, 'Give the text too, or approve it first.')
      }
      const old = shown === null ? { fields: [], body: '' } : parseFile(shown)
      const made = withFields(old, changes, body ?? old.body)
      if (shown !== null && made === old) return
      if (shown !== null && body !== undefined) refuseOverUnclosed(shown, body)
      const today = localDate(this.#replica.environment.now())
      const stamps = new Map([
        ['created', fieldOf(made, 'created') || today],
        ['updated', changes.get('updated') ?? today]
      ])
      const data = editFile(shown ?? new Uint8Array(), changes, body ?? null, stamps)
      await this.#checkPart(key, scope, data)
      await this.#put(change, name, data, dots)
      await change.tellUses(scope)
    })
    return this.#shown(key, scope)
  }

  /** Write exactly this text as the whole file, header included. */
  async writeText(key: string, text: string, how: { scope?: string; seen?: Seen } = {}): Promise<Reading> {
    needText('text', text)
    const scope = this.#target(key, how.scope)
    const name = entryName(key, scope)
    await this.#written(async change => {
      await this.#checkPart(key, scope, utf8(text))
      await this.#put(change, name, utf8(text), this.#before(change, key, scope, how.seen).dots)
      await change.tellUses(scope)
    })
    return this.#shown(key, scope)
  }

  /** Forget a memory on every device, including concurrent writes; with `seen`, only if it is unchanged. False if absent. */
  async forget(key: string, { scope = '', reason = '', seen }: { scope?: string; reason?: string; seen?: Seen } = {}): Promise<boolean> {
    needText('reason', reason)
    const name = entryName(key, scope)
    return this.#written(async change => {
      const entry = change.entry(name)
      if (Object.keys(entry).length === 0 || this.#look.view(name).forgotten) return false
      const dots = seen === undefined ? Object.keys(entry) : this.#dots(key, scope, seen)
      if (!dots.every(dot => Object.hasOwn(entry, dot))) throw replaced(name)
      await this.#checkPart(key, scope, null)
      await change.forget(name, dots)
      const about = { key, ...(reason === '' ? {} : { reason }) }
      if (this.#look.isForgotten(scope)) await change.note('forgot', { ...about, scope })
      else await change.note('forgot', about, scope)
      return true
    })
  }

  /** Resolve a conflict: `text`, a whole file, replaces exactly what `seen` names; without it, the shown state stays, even a forget. */
  async resolve(key: string, text: string | null, { scope = '', seen }: { scope?: string; seen: Seen }): Promise<Reading | null> {
    if (text !== null) needText('text', text)
    const name = entryName(key, scope)
    await this.#written(async change => {
      const entry = change.entry(name)
      if (Object.keys(entry).length === 0) throw new MemoryError('not found', `there is no memory ${key}`)
      const dots = this.#dots(key, scope, seen)
      if (text !== null) {
        await this.#checkPart(key, scope, utf8(text))
        return this.#put(change, name, utf8(text), dots)
      }
      await this.#checkPart(key, scope, null)
      const some = Object.fromEntries(Object.entries(entry).filter(([dot]) => dots.includes(dot)))
      if (this.#replica.viewOfSome(name, some).forgotten) return void (await change.forget(name, dots))
      const { shown } = this.#before(change, key, scope, seen)
      if (shown === null) throw new MemoryError('not found', `${key} has no text to keep`)
      return this.#put(change, name, shown, dots)
    })
    return this.#look.readIn(key, scope)
  }

  /** Restore an earlier text, with its author. It replaces `seen` ([]: nothing is shown), else the shown text, or the forget. */
  async restore(key: string, which: Past, { scope = '', seen }: { scope?: string; seen?: Seen } = {}): Promise<Reading> {
    const name = entryName(key, scope)
    const { textToRestore } = await import('./device/past.ts')
    await this.#written(async change => {
      const isNothing = Array.isArray(seen) && seen.length === 0
      const { data, of } = textToRestore(this.#look, key, scope, which, isNothing)
      const dots = this.#dots(key, scope, isNothing ? undefined : seen)
      checkBody(key, data)
      await this.#checkPart(key, scope, data)
      this.#checkNotHidden(change, name, dots)
      await change.put(name, data, dots, { of, promoted: of === '' })
    })
    return this.#shown(key, scope)
  }

  /** Approve a pending text as the person's own: the copy `file`, or '' for the shown one. Never call it for a model. */
  async approve(key: string, file: string, { scope = '' } = {}): Promise<Reading> {
    entryName(key, scope)
    const { approve } = await import('./device/promoting.ts')
    await this.#written(change => approve(this.#look, change, key, scope, file))
    return this.#shown(key, scope)
  }

  /** Move an own text to another scope, or copy it with `keep`. A text there is replaced only if `ifMatch` is its SHA-256. */
  async promote(key: string, to: string, { scope = '', seen, ...how }: { scope?: string; seen?: Seen } & PromoteHow = {}): Promise<Reading> {
    const there = this.#led(to)
    const { promote } = await import('./device/promoting.ts')
    await this.#written(change => promote(this.#look, change, key, scope, there, seen === undefined ? null : this.#dots(key, scope, seen), how))
    return this.#shown(key, there)
  }

  /** Add an event to the timeline. */
  note(type: string, data: Readonly<Record<string, unknown>> = {}, { scope = '' } = {}): Promise<TimelineEvent> {
    needText('type', type)
    needObject('data', data)
    checkScope(scope)
    return this.#written(change => change.note(type, data, scope))
  }

  // --- export and import ---

  /** Export one scope as one JSON text (`memory/0.1`), for any other program. */
  export({ scope = '' } = {}): string {
    const files = new Map<string, string>()
    const others: Text[] = []
    checkScope(scope)
    for (const one of this.#look.list([scope], { sessions: true })) {
      const reading = one.here ? this.#look.readIn(one.key, scope) : null
      if (reading?.own === true) files.set(one.key, reading.text)
      else if (reading !== null) others.push([one.key, reading.text])
    }
    for (const one of this.conflicts({ scope })) others.push(...one.copies.filter(copy => !copy.own).map((copy): Text => [one.key, copy.text]))
    return writeBlob(files, this.#look.events(scope), this.index({ scope }), others)
  }

  /**
   * Import such a text, or the object that it encodes. `merge`: keep the shown texts and add different ones as alternatives; `replace`: the
   * imported texts supersede them.
   */
  async import(source: string | object, { scope = '', strategy = 'merge' as Strategy } = {}): Promise<Imported> {
    if (typeof source !== 'string') needObject('the export', source, 'Give what export() returned, or that text as an object.')
    needOneOf('strategy', strategy, STRATEGIES)
    checkScope(scope)
    const [{ asJson, Importing }, { readExport }] = await Promise.all([import('./device/importing.ts'), import('./core/blob_reading.ts')])
    const read = readExport(typeof source === 'string' ? source : asJson(source))
    const importing = new Importing(this.#look, strategy)
    await this.#written(change => importing.take(change, { ...read, forgotten: [], card: null }, scope))
    return importing.done()
  }

  /**
   * Export all scopes, or one, as plain files by path: the folder that `ipfsmem export` writes and `ipfsmem import` accepts. Texts that are
   * not on this device are left out.
   */
  async exportFiles({ scope = null }: { scope?: string | null } = {}): Promise<Record<string, string>> {
    return (await import('./device/all_scopes.ts')).filesOf(this.#look, scope, one => this.index({ scope: one }))
  }

  /**
   * Import such a tree. A scope goes to the scope of the same token, unless `maps` names another; if that exists here, the person must
   * confirm it by `maps`, or by `same`: the tree is a backup of this vault. Everything is decided before anything is written.
   */
  async importFiles(files: Readonly<Record<string, string>>, { strategy = 'merge', ...said }: { strategy?: Strategy } & Pick<Assigning, 'maps' | 'same'> = {}): Promise<Imported> {
    needTexts('files', files)
    needOneOf('strategy', strategy, STRATEGIES)
    return (await import('./device/all_scopes.ts')).takenIn(this.#look, files, strategy, said, work => this.#written(work))
  }

  // --- sync ---

  /** Pull, merge and publish. */
  async sync(how: SyncHow = {}): Promise<SyncReport> {
    await this.#first
    return this.#synced(this.#providers, how)
  }

  async #synced(providers: readonly Provider[], how: SyncHow): Promise<SyncReport> {
    try {
      return await sync(this.#replica, providers, how)
    } finally {
      this.#tell()
    }
  }

  /**
   * Return everything of this device as a CAR, for another device to import (`ipfsmem sync --car FILE`) when no provider accepts uploads.
   * Null before the first sync.
   */
  async outbox(): Promise<{ root: string; car: Bytes } | null> {
    const { kept, device } = this.#replica
    // Writes since the last version are in none yet; make one without any request.
    if (kept.n > (kept.seen[device.id]?.n ?? 0)) await this.#synced([], {})
    const root = this.#replica.kept.commit?.root
    if (root === undefined) return null
    const { blocks } = this.#replica
    const all = [...treeOf(root, blocks)].reverse().map((cid): Block => [cid, blocks.peek(cid) as Bytes])
    return { root, car: writeCar({ roots: [root], blocks: all }) }
  }

  /** Return this device's request to be added (for a QR code, or as text), with six words to compare. It contains no secret. */
  static async request(device: Device, pointer: Pointer): Promise<{ text: string; words: string[] }> {
    const [{ enrolleeOf, enrolmentRequest, fingerprint }, { wordlist }] = await Promise.all([import('./core/enrolling.ts'), WORDS()])
    const tag = fromHex(pointer.vault, 16)
    const one = await enrolleeOf(device.signer, device.box.public, device.label, tag)
    return { text: `${REQUEST}${base64url(enrolmentRequest(tag, one))}`, words: fingerprint(tag, one.sign, one.box, wordlist) }
  }

  /** Return what another device needs to find this vault and request to be added. It contains no secret. */
  pointer(): Pointer {
    return { vault: hex(this.#ring.tag), anchor: this.#replica.kept.anchor }
  }

  /** Return the label in a request, and the six words that its device shows too. */
  async readRequest(text: string): Promise<{ label: string; words: string[] }> {
    const ring = this.#ring
    const [{ fingerprint, readRequest }, { wordlist }] = await Promise.all([import('./core/enrolling.ts'), WORDS()])
    const one = await readRequest(requestBytes(text), ring.tag)
    return { label: one.label, words: fingerprint(ring.tag, one.sign, one.box, wordlist) }
  }

  /** Add the device of this request, after a person compared the words. `root`: the keys of the wallet or of a recovery phrase. */
  async admit(text: string, root: RootKeys): Promise<SyncReport> {
    const ring = this.#ring
    const { readRequest } = await import('./core/enrolling.ts')
    const one = await readRequest(requestBytes(text), ring.tag)
    return this.sync({ root, enrollee: { ...one, anchor: null } })
  }

  // --- internal ---

  get #ring(): Ring {
    const { ring } = this.#replica
    need(ring !== null, 'none', 'this device has not read its memory yet')
    return ring
  }

  async #sessions(scope: string): Promise<AllSessions> {
    const { AllSessions } = await import('./device/sessions.ts')
    return new AllSessions(this.#look, this.#look.stack(this.#led(scope)))
  }

  /** Refuse to remove the mark of imported messages, or to approve them, by writing (`data`) or forgetting (null) one part of a session. */
  async #checkPart(key: string, scope: string, data: Bytes | null): Promise<void> {
    if (!key.startsWith('session-')) return
    const { Sessions } = await import('./device/sessions.ts')
    const there = new Sessions(this.#look, scope)
    there.needReplaceable(key)
    if (data !== null) there.needNoApproval({ key, data, isBeside: false })
  }

  /** Return the scope to which a scope redirects. */
  #led(scope: string): string {
    checkScope(scope)
    return this.#look.target(scope)
  }

  /** Return the scope for a write. A text shown there from a scope that redirects to it is not part of it, and stays where it is. */
  #target(key: string, scope = ''): string {
    entryName(key, scope)
    return this.#look.target(scope)
  }

  #ownDots(name: string): Token {
    const view = this.#look.view(name)
    return view.own ? view.dots : []
  }

  /** Return the dots that a write replaces; without `seen`, those of the shown own text, since a pending text was shown to no agent. */
  #dots(key: string, scope: string, seen: Seen | undefined): Token {
    const name = entryName(key, scope)
    if (seen === undefined) return this.#ownDots(name)
    if (typeof seen !== 'string') {
      const said = seen as { readonly key?: unknown; readonly scope?: unknown }
      if (typeof said.key === 'string' && (said.key !== key || said.scope !== scope)) throw new MemoryError('usage', `seen is of another memory than ${name.slice(2)}`)
      return 'token' in seen ? seen.token : seen
    }
    if (seen.length < LEAST_SEEN) throw new MemoryError('usage', `seen must have at least ${LEAST_SEEN} hex digits`)
    const view = this.#look.view(name)
    for (const token of [view.dots, this.#look.conflictOf(key, scope, name, view).token]) if (tokenHash(token).startsWith(seen.toLowerCase())) return token
    throw new MemoryError('changed', `${key} changed since it was read`, 'Read it again.')
  }

  /** Return the text that a writer has seen, and the dots that its write replaces. */
  #before(change: Writing, key: string, scope: string, seen: Seen | undefined): { shown: Bytes | null; dots: Token } {
    const name = entryName(key, scope)
    const below = this.#below(key, scope, seen)
    if (below !== null) return { shown: utf8(below.text), dots: [] }
    const dots = this.#dots(key, scope, seen)
    const textOf = (view: ShownView): Bytes | null => {
      if (view.shown === null && view.notFetched.length > 0) throw notFetched(name)
      return view.shown
    }
    if (seen === undefined) {
      const view = this.#look.view(name)
      return { shown: view.own ? textOf(view) : null, dots }
    }
    if (typeof seen === 'object' && 'text' in seen && typeof seen.text === 'string') return { shown: utf8(seen.text), dots }
    if (typeof seen === 'object' && 'copies' in seen) {
      const { shown, forgotten } = seen as Conflict
      if (shown === null && !forgotten) throw notFetched(name)
      return { shown: shown === null ? null : utf8(shown.text), dots }
    }
    const entry = change.entry(name)
    if (!dots.every(dot => Object.hasOwn(entry, dot))) throw replaced(name)
    const some = Object.fromEntries(Object.entries(entry).filter(([dot]) => dots.includes(dot)))
    return { shown: textOf(this.#replica.viewOfSome(name, some)), dots }
  }

  /** Return the text shown under an absent key, from the scopes that redirect to this one. */
  #below(key: string, scope: string, seen: Seen | undefined): Reading | null {
    const stack = scope === '' ? [] : this.#look.stack(scope).slice(1)
    if (stack.length === 0 || Object.keys(this.#replica.entry(entryName(key, scope))).length > 0) return null
    const found = this.#look.read(key, stack)
    if (found === null) return null
    const dots = seen === undefined || typeof seen === 'string' ? null : 'token' in seen ? seen.token : seen
    const isSeen = seen === undefined || (typeof seen === 'string' ? found.seen.startsWith(seen.toLowerCase()) : dots?.join() === found.token.join())
    if (!isSeen) throw new MemoryError('changed', `${key} changed since it was read: it shows ${found.scope}/${key}`, 'Read it again.')
    if (!found.own) throw new MemoryError('usage', `${found.scope}/${key} is pending, so its parts cannot be written to the scope ${scope}`, 'Approve it first.')
    return found
  }

  #checkNotHidden(change: Writing, name: string, dots: Token): void {
    const isOwn = isOwnWord(this.#replica.isMine)
    if (Object.entries(change.entry(name)).some(([dot, value]) => value.kind === 'forgotten' && isOwn(dot, value) && !dots.includes(dot))) {
      throw new MemoryError('changed', `${readName(name).ctx} was forgotten meanwhile, so nothing was written`, 'To create it again, write without seen.')
    }
  }

  async #put(change: Writing, name: string, data: Bytes, dots: Token): Promise<void> {
    checkBody(readName(name).ctx, data)
    const values = Object.entries(change.entry(name))
    if (values.length === 1 && dots.includes(values[0]?.[0] as string) && values[0]?.[1].body === hex(sha256(data))) return
    this.#checkNotHidden(change, name, dots)
    await change.put(name, data, dots)
  }

  #shown(key: string, scope: string): Reading {
    const reading = this.#look.readIn(key, scope)
    need(reading !== null, 'missing', `${key} was written and is not shown`)
    return reading
  }

  async #written<T>(work: (change: Writing) => Promise<T>): Promise<T> {
    await this.#first
    try {
      return await writing(this.#replica, work)
    } finally {
      this.#tell()
    }
  }

  async #refresh(): Promise<void> {
    await this.#replica.storage.exclusively('write', () => this.#replica.refresh())
    this.#tell()
  }

  #tell(): void {
    const { revision } = this.#replica
    if (revision === this.#announced) return
    this.#announced = revision
    for (const heard of this.#heard) heard({ revision })
  }
}

export { BLOB_VERSION }

const REQUEST = 'ipfsmem:request:'
/** The word list, loaded when a device is added. */
const WORDS = () => import('@scure/bip39/wordlists/english.js')

function requestBytes(text: string): Bytes {
  const trimmed = text.trim()
  if (!trimmed.startsWith(REQUEST)) throw new MemoryError('usage', 'not a request of a device', `It begins with ${REQUEST}`)
  return fromBase64url(trimmed.slice(REQUEST.length))
}

const LEAST_SEEN = 8

const replaced = (name: string): MemoryError => new MemoryError('changed', `the text of ${name.slice(2)} that was read was replaced meanwhile`, 'Read it again.')

const STRATEGIES: readonly Strategy[] = ['merge', 'replace']

/** Return the header fields that a writer passes. */
function writtenFields(how: WriteHow): Map<string, string> {
  needTexts('the options of write', { name: how.name, description: how.description, type: how.type, scope: how.scope })
  if (how.fields !== undefined) needTexts('fields', how.fields)
  if (how.tags !== undefined && !(Array.isArray(how.tags) && how.tags.every(tag => typeof tag === 'string'))) throw new MemoryError('usage', 'tags must be an array of strings')
  const named = { name: how.name, description: how.description, type: how.type, tags: how.tags && writeTags(how.tags) }
  return new Map(Object.entries({ ...named, ...how.fields }).filter((one): one is [string, string] => one[1] !== undefined))
}

/** Refuse an invalid memory. */
function checkBody(key: string, data: Bytes): void {
  if (data.length > MOST_FILE) throw new MemoryError('limit', `${key} would have ${data.length} bytes, at most ${MOST_FILE} are allowed`, 'Split it into two memories.')
  parseFile(data)
}

/** Return a file with some fields set, or removed where the new value is empty; the same object if nothing changes. */
function withFields(file: MemoryFile, changes: ReadonlyMap<string, string>, body: string): MemoryFile {
  const fields = new Map(file.fields)
  for (const [name, value] of changes) {
    if (value === '') fields.delete(name)
    else fields.set(name, value)
  }
  const made = { fields: [...fields], body: body.replace(/\n+$/, '') }
  return JSON.stringify(made) === JSON.stringify({ fields: file.fields, body: file.body }) ? file : made
}
