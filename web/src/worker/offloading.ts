/**
 * Check many signatures and open many objects in further workers of the same program, while the first one does its part. All run the same
 * functions, so results are equal. Without further workers, or when one ends, everything is done here.
 */

import type { Bytes } from '../core/bytes.ts'
import { checkAll, type Signed } from '../core/curves.ts'
import { EpochKey, type ObjectType, type SealedObject } from '../core/sealed.ts'
import { type Offloading, opened, type Opened } from '../device/offloading.ts'
import { type Port, wired } from './remote.ts'

/** Fewer are done here, before another worker would have started. */
const LEAST = 256
/** Objects opened at once: the work between two checks for messages. */
const PART = 64
const MOST_HELPERS = 2

/** A request to another worker: many signatures, or objects with their keys. */
export type Check = readonly Signed[]
export type Open = { readonly keys: readonly (readonly [epoch: number, key: Bytes, tag: Bytes])[]; readonly objects: readonly (readonly [key: number, type: ObjectType, ctx: string, object: Bytes])[] }

/** Answer such a request. */
export const checked = (all: Check): Promise<readonly boolean[]> => checkAll(all)

export function openedAs({ keys, objects }: Open): (Opened | null)[] {
  const own = keys.map(([epoch, key, tag]) => new EpochKey(epoch, key, tag))
  return objects.map(([key, type, ctx, object]) => opened({ key: own[key] as EpochKey, type, ctx, object }))
}

function openOf(all: readonly SealedObject[]): Open {
  const keys = [...new Set(all.map(one => one.key))]
  return { keys: keys.map(({ epoch, key, tag }) => [epoch, key, tag] as const), objects: all.map(({ key, type, ctx, object }) => [keys.indexOf(key), type, ctx, object] as const) }
}

type Ask = (method: string, args: readonly unknown[]) => Promise<unknown>

/** Let waiting messages be handled. */
function turn(): Promise<void> {
  const { port1, port2 } = new MessageChannel()
  return new Promise(done => {
    port1.onmessage = () => {
      port1.close()
      done()
    }
    port2.postMessage(null)
  })
}

/** Further workers, started before they are needed, since their program loads only while this thread is idle. */
export class Helpers implements Offloading {
  #helpers: { readonly worker: Port; readonly ask: Ask }[] = []

  /** `make`: starts a worker that answers `check` and `unseal` (`host.ts`). */
  constructor(readonly make: () => Port & { onerror: ((event: ErrorEvent) => void) | null }) {}

  start(): void {
    if (this.#helpers.length > 0) return
    try {
      for (let more = Math.min(MOST_HELPERS, navigator.hardwareConcurrency - 1); more > 0; more--) {
        const worker = this.make()
        const { ask } = wired(worker)
        const broken = new Promise<never>((_, failed) => (worker.onerror = failed))
        broken.catch(() => undefined)
        this.#helpers.push({ worker, ask: (method, args) => Promise.race([ask(method, args), broken]) })
      }
    } catch {
      // then this thread does it
    }
  }

  stop(): void {
    for (const { worker } of this.#helpers) worker.terminate()
    this.#helpers = []
  }

  readonly checkAll = async (all: Check): Promise<readonly boolean[]> => {
    const [helper] = this.#helpers
    if (helper === undefined || all.length < LEAST) return checkAll(all)
    // Send only the checked fields; the caller's other data stays here.
    const checks: Check = all.map(({ key, message, signature }) => ({ key, message, signature }))
    return (helper.ask('check', [checks]) as Promise<readonly boolean[]>).catch(() => checkAll(all))
  }

  readonly openAll = async (all: readonly SealedObject[]): Promise<readonly (Opened | null)[]> => {
    if (this.#helpers.length === 0 || all.length < LEAST) return all.map(opened)
    const out: (Opened | null)[] = []
    let next = 0
    const parts = async (done: (some: readonly SealedObject[]) => Promise<readonly (Opened | null)[]>): Promise<void> => {
      for (let from = next; from < all.length; from = next) {
        next = from + PART
        const some = all.slice(from, next)
        for (const [i, one] of (await done(some)).entries()) out[from + i] = one
      }
    }
    const here = async (some: readonly SealedObject[]): Promise<(Opened | null)[]> => {
      const made = some.map(opened)
      await turn()
      return made
    }
    const there = (ask: Ask) => (some: readonly SealedObject[]) => (ask('unseal', [openOf(some)]) as Promise<readonly (Opened | null)[]>).catch(() => some.map(opened))
    // Each worker has one part in progress and one waiting.
    await Promise.all([...this.#helpers.flatMap(({ ask }) => [parts(there(ask)), parts(there(ask))]), parts(here)])
    return out
  }
}
