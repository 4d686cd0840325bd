/** A memory opened in this browser in one call: its keys, where it is kept, and its providers by what people write of them. */

import type { RootKeys } from './core/wallet.ts'
import { theWorld, type World } from './device/device.ts'
import { MemoryError } from './device/errors.ts'
import { Memory } from './memory.ts'
import { forgetDevice, openDevice, type Opener, openerOfRoot, unlockedDevice } from './store/browser_keys.ts'
import { BrowserKeeping, isKept, openDatabase } from './store/idb.ts'
import { gateway, router } from './sync/gateways.ts'
import type { Fetch } from './sync/http.ts'
import { peer } from './sync/peer.ts'
import type { Provider } from './sync/provider.ts'
import type { Pointer } from './sync/syncing.ts'

/** A provider as it is written: `peer:https://...` (with a token it keeps what is sent), `gateway:https://...`, `routing:https://...`. */
export type Spec = string | { readonly at: string; readonly token?: string | null }

export function providerOf(spec: Spec, fetch: Fetch): Provider {
  const { at, token = null } = typeof spec === 'string' ? { at: spec } : spec
  const [, kind, url] = /^(peer|gateway|routing):(https?:\/\/.+)$/.exec(at) ?? []
  if (url === undefined) throw new MemoryError('usage', `${at} is no provider that this program knows`, 'For instance peer:https://example.org, gateway:https://..., routing:https://...')
  if (kind === 'peer') return peer(url, token, fetch)
  return kind === 'gateway' ? gateway(url, fetch) : router(url, fetch)
}

export type OpenHow = {
  /** Which memory of this origin; its own database. */
  readonly name?: string
  readonly at: readonly Spec[]
  /** The wallet's keys or those of recovery words. */
  readonly root?: RootKeys | null
  /** A passkey that wraps this browser's keys. */
  readonly passkey?: Opener | null
  /** Keep the keys usable here until `lock`. */
  readonly stay?: boolean
  /** What people call this browser. */
  readonly label?: string
  readonly pointer?: Pointer | null
  readonly world?: World
}

/** Open the memory in this browser. `MemoryError` of kind `locked` where a wallet, words or a passkey is needed. */
export async function openMemory({ name = 'default', at, root = null, passkey = null, stay = false, label = 'browser', pointer = null, world = theWorld }: OpenHow): Promise<Memory> {
  const db = await openDatabase(name)
  const keeping = new BrowserKeeping(db, name)
  try {
    const providers = at.map(one => providerOf(one, (url, init) => fetch(url, init)))
    const opener = root === null ? passkey : openerOfRoot(root)
    const staying = opener === null ? await unlockedDevice(db, world) : null
    if (staying === null && opener === null) throw new MemoryError('locked', 'this memory is locked', 'Unlock it with the wallet, the recovery words or the passkey.')
    // One tab at a time, so that no other takes the keys of a device that is about to find its memory for left over.
    return await keeping.exclusively('open', async () => {
      const { device, isNew } = staying === null ? await openDevice(db, opener as Opener, { label, stay, world }) : { device: staying, isNew: false }
      try {
        // Who has been let in needs no root again; the first time it enrols this browser.
        return await Memory.load({ device, keeping, providers, world, root: (await isKept(db)) ? null : root, pointer })
      } catch (error) {
        // Keys that led to no memory, as those of a wrong passphrase, must not keep the right ones out; who was told where it is may wait to be let in.
        if (isNew && pointer === null && !(await isKept(db))) await forgetDevice(db)
        throw error
      }
    })
  } catch (error) {
    keeping.close()
    throw error
  }
}
