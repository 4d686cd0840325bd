/**
 * Signatures of many values checked, and many objects opened, by further workers of the same program while the first goes on with its part. They decide as it would: they
 * run the same functions. Where there can be no further worker, or one ends, everything is done here.
 */

import type { Bytes } from '../core/bytes.ts'
import { checkAll, type Signed } from '../core/curves.ts'
import { EpochKey, type ObjectType, type SealedObject } from '../core/sealed.ts'
import { type Beside, opened, type Opened } from '../device/beside.ts'
import { type Port, wired } from './remote.ts'

/** Fewer are done here before another worker has heard of them. */
const LEAST = 256
/** Objects that are opened in one go: what this worker does between two looks at what came. */
const PART = 64
const MOST_HELPERS = 2

/** What another worker is asked: many signatures, or objects with the keys that open them. */
export type Check = readonly Signed[]
export type Open = { readonly keys: readonly (readonly [epoch: number, key: Bytes, tag: Bytes])[]; readonly objects: readonly (readonly [key: number, type: ObjectType, ctx: string, object: Bytes])[] }

/** What another worker answers. */
export const checked = (all: Check): Promise<readonly boolean[]> => checkAll(all)

export function openedAs({ keys, objects }: Open): (Opened | null)[] {
  const own = keys.map(([epoch, key, tag]) => new EpochKey(epoch, key, tag))
  return objects.map(([key, type, ctx, object]) => opened({ key: own[key] as EpochKey, type, ctx, object }))
}

function openOf(all: readonly SealedObject[]): Open {
  const keys = [...new Set(all.map(one => one.key))]
  return { keys: keys.map(({ epoch, key, tag }) => [epoch, key, tag] as const), objects: all.map(({ key, type, ctx, object }) => [keys.indexOf(key), type, ctx, object] as const) }
}

type Ask = (method: string, given: readonly unknown[]) => Promise<unknown>

/** A turn for what came meanwhile. */
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

/** Further workers, started before they are needed, as their program is loaded only while this thread is idle. */
export class Helpers implements Beside {
  #helpers: { readonly worker: Port; readonly ask: Ask }[] = []

  /** `make`: starts one that answers `check` and `unseal` (`host.ts`). */
  constructor(readonly make: () => Port & { onerror: ((event: ErrorEvent) => void) | null }) {}

  start(): void {
    if (this.#helpers.length > 0) return
    try {
      for (let more = Math.min(MOST_HELPERS, navigator.hardwareConcurrency - 1); more > 0; more--) {
        const worker = this.make()
        const { ask } = wired(worker)
        const broken = new Promise<never>((_, failed) => (worker.onerror = failed))
        broken.catch(() => undefined)
        this.#helpers.push({ worker, ask: (method, given) => Promise.race([ask(method, given), broken]) })
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
    // Nothing but what is checked: what else the caller notes of each stays here.
    const asked: Check = all.map(({ key, message, signature }) => ({ key, message, signature }))
    return (helper.ask('check', [asked]) as Promise<readonly boolean[]>).catch(() => checkAll(all))
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
    // Each has a part under way while the next one waits for it.
    await Promise.all([...this.#helpers.flatMap(({ ask }) => [parts(there(ask)), parts(there(ask))]), parts(here)])
    return out
  }
}
