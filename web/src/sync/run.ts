/** The shared state of one sync: its notices, the records of names, and the providers that did not answer. */

import { fromBase64url, type Bytes, Refused } from '../core/bytes.ts'
import { rawCid } from '../core/cid.ts'
import type { Enrollee } from '../core/enrolling.ts'
import { newestRecord, readRecord } from '../core/ipns.ts'
import { objectsOf } from '../core/publishing.ts'
import type { State } from '../core/state.ts'
import type { Verdict } from '../core/vault.ts'
import type { RootKeys } from '../core/wallet.ts'
import { MemoryError } from '../device/errors.ts'
import type { Replica } from '../device/replica.ts'
import { fetchBlocks, fetchTops, fetchTrees } from './fetching.ts'
import { type BlockStore, type NameServer, type Provider, ProviderError } from './provider.ts'

/** A notice of a sync for a person; `provider`: the provider concerned, or ''. */
export type Notice = { readonly kind: string; readonly text: string; readonly provider: string }

export type SyncReport = {
  /** The root to which this device's name leads; null if nothing was published. */
  readonly root: string | null
  /** Whether changes of others were joined, and whether a provider accepted ours. */
  readonly joined: boolean
  readonly published: boolean
  readonly verdicts: Readonly<Record<string, Verdict>>
  readonly notices: readonly Notice[]
  readonly sentBlocks: number
}

/** Where to find a vault: its tag, and the public key of its anchor, both in hex. */
export type Pointer = { readonly vault: string; readonly anchor: string }

export type SyncHow = {
  /** For a device that was added by its request. */
  readonly pointer?: Pointer | null
  /** A version that a person named, if no name leads to one. */
  readonly begin?: string
  /** A device to add. */
  readonly enrollee?: Enrollee
  /** An unlocked root: the keys of the wallet or of a recovery phrase. */
  readonly root?: RootKeys | null
  readonly progress?: (step: string) => void
  /**
   * Called once in the first sync of a device, when the joined state is shown and not stored yet; storing starts when the promise resolves.
   */
  readonly shown?: () => Promise<void>
}

export class Run {
  readonly notices: Notice[] = []
  readonly names = new Map<string, Bytes>()
  /** The records that each name server returned. */
  readonly shown = new Map<string, Bytes | null>()
  readonly brought = new Set<string>()
  /** Providers that failed while they were read. */
  readonly silent = new Set<string>()
  /** Providers of which a part could not be read. */
  readonly incomplete = new Set<string>()

  constructor(
    readonly replica: Replica,
    readonly providers: readonly Provider[],
    readonly how: SyncHow
  ) {
    for (const [name, text] of Object.entries(replica.kept.records)) this.names.set(name, fromBase64url(text))
  }

  say(kind: string, text: string, provider = ''): void {
    this.notices.push({ kind, text, provider })
  }

  /** Add a notice that applies to several, once. */
  sayOnce(kind: string, text: string): void {
    if (!this.notices.some(one => one.kind === kind && one.text === text)) this.say(kind, text)
  }

  /** Report a provider's failure, unless it is in `said`; the sync continues with the others. */
  failed(error: unknown, told?: Set<string>): void {
    if (!(error instanceof ProviderError)) throw error
    const said = told ?? (error.found === undefined ? this.silent : this.incomplete)
    if (!said.has(error.provider)) this.say('provider', error.message, error.provider)
    said.add(error.provider)
  }

  unread(text: string, provider: string): void {
    this.incomplete.add(provider)
    if (!this.notices.some(one => one.text === text)) this.say('unread', text, provider)
  }

  get nameServers(): NameServer[] {
    return this.providers.flatMap(one => one.names ?? [])
  }

  get stores(): BlockStore[] {
    return this.providers.flatMap(one => one.store ?? [])
  }

  /** Accept a record if it is signed and greater than the known one. */
  async offer(name: string, bytes: Bytes, provider: string): Promise<void> {
    const read = async (one: Bytes) => {
      try {
        return await readRecord(name, one)
      } catch (error) {
        if (error instanceof Refused) return null
        throw error
      }
    }
    const offered = await read(bytes)
    if (offered === null) {
      this.say('bad-record', `${provider} returned a newest version that its device did not sign; it was ignored`, provider)
      return
    }
    const held = this.names.get(name)
    const known = held === undefined ? null : await read(held)
    this.names.set(name, known === null ? bytes : newestRecord([offered, known]).bytes)
  }

  /** Query names at every name server; throws if none answers. */
  async ask(names: readonly string[]): Promise<void> {
    const servers = this.nameServers
    const answers = await Promise.all(
      servers.flatMap(server =>
        names.map(async name => {
          try {
            const record = await server.record(name, text => this.unread(text, server.name))
            this.shown.set(`${server.name} ${name}`, record)
            if (record !== null) await this.offer(name, record, server.name)
            return true
          } catch (error) {
            this.failed(error)
            return false
          }
        })
      )
    )
    if (servers.length > 0 && names.length > 0 && !answers.includes(true)) {
      throw new MemoryError('provider', 'none of the providers that store names responded', this.notices.map(one => one.text).join('; '))
    }
  }

  async fetch(roots: readonly string[]): Promise<readonly string[]> {
    const readers = this.providers.flatMap(one => one.reader ?? [])
    const found = await fetchTrees(roots, this.replica.blocks, readers, this.replica.whole)
    for (const error of found.silent) this.failed(error)
    for (const cid of found.brought) this.brought.add(cid)
    return found.missingNodes
  }

  /** Fetch what identifies the roots of a list. */
  async fetchTops(roots: readonly string[]): Promise<void> {
    const readers = this.providers.flatMap(one => one.reader ?? [])
    const found = await fetchTops(roots, this.replica.blocks, readers)
    for (const error of found.silent) this.failed(error)
    for (const cid of found.brought) this.brought.add(cid)
  }

  /** Request by hash the objects that a state names and that are missing here (FORMAT.md 6). */
  async askForMissing(state: State): Promise<void> {
    const { blocks } = this.replica
    const missing = [...objectsOf(state).keys()].map(objectCid).filter(cid => blocks.peek(cid) === null)
    if (missing.length === 0) return
    const silent = new Map<string, ProviderError>()
    const readers = this.providers.flatMap(one => one.reader ?? [])
    const found = await fetchBlocks(missing, readers, silent)
    for (const error of silent.values()) this.failed(error)
    for (const [cid, data] of found) {
      blocks.add(cid, data)
      this.brought.add(cid)
    }
    const left = missing.length - found.size
    if (left > 0) this.say('missing', `no provider gives ${left} ${left === 1 ? 'part' : 'parts'} of this vault now; each sync requests them again`)
  }
}

export const objectCid = (hash: string): string => rawCid(hash).text
