/** What one sync knows on its way: its notices, the names that it has heard of, and who did not answer. */

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
import { type Keeper, type NameServer, type Provider, ProviderError } from './provider.ts'

/** Something that a person should know of a sync; `provider` is the name of the one that it is about, '' where it is not about one. */
export type Notice = { readonly kind: string; readonly text: string; readonly provider: string }

export type SyncReport = {
  /** The root that this device's name leads to; null where nothing was published. */
  readonly root: string | null
  /** Whether anything came from others, and whether a keeper took anything of ours. */
  readonly joined: boolean
  readonly published: boolean
  readonly verdicts: Readonly<Record<string, Verdict>>
  readonly notices: readonly Notice[]
  readonly sentBlocks: number
}

/** Where a memory is found: its vault, and the public key of its anchor, both in hex. */
export type Pointer = { readonly vault: string; readonly anchor: string }

export type SyncHow = {
  /** For a device that was let in by its request. */
  readonly pointer?: Pointer | null
  /** A version that a person named, for where no name leads to one. */
  readonly begin?: string
  /** A device to let in. */
  readonly enrollee?: Enrollee
  /** An unlocked root: the wallet's keys, or those of recovery words. */
  readonly root?: RootKeys | null
  readonly progress?: (step: string) => void
  /** Called once in the first sync of a device, when what was joined is shown and not kept yet; the sync goes on when it is done. */
  readonly shown?: () => Promise<void>
}

export class Run {
  readonly notices: Notice[] = []
  readonly names = new Map<string, Bytes>()
  /** What each server of names shows. */
  readonly shown = new Map<string, Bytes | null>()
  readonly brought = new Set<string>()
  /** Providers that failed while they were read. */
  readonly silent = new Set<string>()

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

  /** What is true of several is said once. */
  sayOnce(kind: string, text: string): void {
    if (!this.notices.some(one => one.kind === kind && one.text === text)) this.say(kind, text)
  }

  /** Say that a provider failed, unless it is among those `said` before; the sync goes on with the others. */
  failed(error: unknown, said = this.silent): void {
    if (!(error instanceof ProviderError)) throw error
    if (!said.has(error.provider)) this.say('provider', error.message, error.provider)
    said.add(error.provider)
  }

  get nameServers(): NameServer[] {
    return this.providers.flatMap(one => one.names ?? [])
  }

  get keepers(): Keeper[] {
    return this.providers.flatMap(one => one.keeper ?? [])
  }

  /** Take a record when it is signed and greater than the one known. */
  async offer(name: string, bytes: Bytes, provider: string): Promise<void> {
    const read = async (one: Bytes) => {
      try {
        return await readRecord(name, one)
      } catch (error) {
        if (error instanceof Refused) return null
        throw error
      }
    }
    const given = await read(bytes)
    if (given === null) {
      this.say('bad-record', `${provider} returned a newest version that its device did not sign; it was ignored`, provider)
      return
    }
    const held = this.names.get(name)
    const known = held === undefined ? null : await read(held)
    this.names.set(name, known === null ? bytes : newestRecord([given, known]).bytes)
  }

  /** Ask for names at every server that keeps them; throws when none answers. */
  async ask(names: readonly string[]): Promise<void> {
    const servers = this.nameServers
    const answers = await Promise.all(
      servers.flatMap(server =>
        names.map(async name => {
          try {
            const record = await server.record(name)
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
      throw new MemoryError('provider', 'no provider that keeps names answered', this.notices.map(one => one.text).join('; '))
    }
  }

  async fetch(roots: readonly string[]): Promise<readonly string[]> {
    const readers = this.providers.flatMap(one => one.reader ?? [])
    const found = await fetchTrees(roots, this.replica.blocks, readers, this.replica.whole)
    for (const error of found.silent) this.failed(error)
    for (const cid of found.brought) this.brought.add(cid)
    return found.missingNodes
  }

  /** Bring what shows whose versions these are, of roots that a list names. */
  async fetchTops(roots: readonly string[]): Promise<void> {
    const readers = this.providers.flatMap(one => one.reader ?? [])
    const found = await fetchTops(roots, this.replica.blocks, readers)
    for (const error of found.silent) this.failed(error)
    for (const cid of found.brought) this.brought.add(cid)
  }

  /** Ask by their hashes for what a state names and nobody has given yet (FORMAT.md 6). */
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
