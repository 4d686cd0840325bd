/**
 * Storage of a device between runs: a snapshot, the changes since, and blocks, all sealed before they arrive; nothing here can read them.
 */

import type { Bytes } from '../core/bytes.ts'
import type { Block } from '../sync/provider.ts'

export type Loaded = {
  /** The number of the newest change. */
  readonly revision: number
  /** Null if the caller has it already. */
  readonly snapshot: Bytes | null
  /** Changes after the snapshot, or after those that the caller has, oldest first. */
  readonly changes: readonly Bytes[]
}

/** Kinds of exclusive work: opening, a sync, a write; each may do the later ones. */
export type Exclusive = 'open' | 'sync' | 'write'

export type DeviceStorage = {
  /** Run exclusive work, one at a time in all tabs and workers with this vault. Each `name` is a separate lock. */
  exclusively<T>(name: Exclusive, work: () => Promise<T>): Promise<T>
  /** Return everything after a change; 0 for all. */
  load(since: number): Promise<Loaded>
  /** Append one change with its blocks, durable when the promise resolves; returns its number. */
  append(change: Bytes, blocks: readonly Block[]): Promise<number>
  /** Replace all changes so far with a snapshot; returns its number. `gone`: blocks that are no longer needed. */
  replace(snapshot: Bytes, blocks: readonly Block[], gone: readonly string[]): Promise<number>
  cids(): Promise<readonly string[]>
  blocks(cids: readonly string[]): Promise<readonly Block[]>
  /** Subscribe to changes of other tabs; returns the function that unsubscribes. */
  listen(heard: () => void): () => void
}

/** Storage that ends with its program: for tests, and for a device that stores nothing. Two may share one, as two tabs do. */
export class VolatileStorage implements DeviceStorage {
  #revision = 0
  #snapshotAt = 0
  #snapshot: Bytes | null = null
  #changes: { at: number; row: Bytes }[] = []
  readonly #blocks = new Map<string, Bytes>()
  readonly #queues = new Map<string, Promise<unknown>>()
  readonly #listeners = new Set<() => void>()

  exclusively<T>(name: Exclusive, work: () => Promise<T>): Promise<T> {
    const done = (this.#queues.get(name) ?? Promise.resolve()).then(work, work)
    this.#queues.set(
      name,
      done.catch(() => undefined)
    )
    return done
  }

  async load(since: number): Promise<Loaded> {
    const isBehind = since < this.#snapshotAt
    const from = isBehind ? this.#snapshotAt : since
    const changes = this.#changes.filter(one => one.at > from).map(one => one.row)
    return { revision: this.#revision, snapshot: isBehind ? this.#snapshot : null, changes }
  }

  async append(change: Bytes, blocks: readonly Block[]): Promise<number> {
    for (const [cid, data] of blocks) this.#blocks.set(cid, data)
    this.#changes.push({ at: ++this.#revision, row: change })
    this.#tell()
    return this.#revision
  }

  async replace(snapshot: Bytes, blocks: readonly Block[], gone: readonly string[]): Promise<number> {
    for (const [cid, data] of blocks) this.#blocks.set(cid, data)
    for (const cid of gone) this.#blocks.delete(cid)
    this.#snapshot = snapshot
    this.#snapshotAt = ++this.#revision
    this.#changes = []
    this.#tell()
    return this.#revision
  }

  async cids(): Promise<readonly string[]> {
    return [...this.#blocks.keys()]
  }

  async blocks(cids: readonly string[]): Promise<readonly Block[]> {
    return cids.flatMap((cid): Block[] => {
      const data = this.#blocks.get(cid)
      return data === undefined ? [] : [[cid, data]]
    })
  }

  listen(heard: () => void): () => void {
    this.#listeners.add(heard)
    return () => void this.#listeners.delete(heard)
  }

  #tell(): void {
    for (const heard of this.#listeners) queueMicrotask(heard)
  }
}
