/** Open a vault in this browser in one call: its keys, its storage, and its providers from their specs. */

import type { RootKeys } from './core/wallet.ts'
import { defaultEnvironment, type Environment } from './device/device.ts'
import { MemoryError } from './device/errors.ts'
import { Memory } from './memory.ts'
import { keepPlaces, keptPlaces, type Spec } from './store/kept_places.ts'
import { openDevice, type Opener, openerOfRoot, unlockedDevice } from './store/browser_keys.ts'
import { BrowserStorage, isKept, openDatabase } from './store/idb.ts'
import { gateway, router } from './sync/gateways.ts'
import type { Fetch } from './sync/http.ts'
import { loadedLater } from './sync/loaded_later.ts'
import { peer } from './sync/peer.ts'
import type { Provider } from './sync/provider.ts'
import type { Pointer } from './sync/syncing.ts'
import { webdav } from './sync/webdav.ts'

export type { Spec }

/**
 * `peer:https://...`, `webdav:https://...` and `pinata` store uploads, with a token (`user:password` for WebDAV); `gateway:https://...` is
 * read, `routing:https://...` resolves and stores names.
 */
export function providerOf(spec: Spec, fetch: Fetch): Provider {
  const { at, token = null } = typeof spec === 'string' ? { at: spec } : spec
  if (at === 'pinata') {
    if (token === null) throw new MemoryError('usage', 'Pinata only stores data, and requires a key', 'The JWT of a key with org:files:read and org:files:write, of app.pinata.cloud, API Keys.')
    return loadedLater(at, async () => (await import('./sync/pinata.ts')).pinata(token, fetch), { writes: true, takesTrees: true })
  }
  const [, named, url] = /^(peer|webdav|gateway|routing):(https?:\/\/.+)$/i.exec(at) ?? []
  // It may hold a password.
  if (url === undefined) throw new MemoryError('usage', `unknown provider ${at.replace(/^([a-z]*:).+$/is, '$1...')}`, 'For instance peer:https://example.org, webdav:https://..., gateway:https://..., routing:https://...')
  const kind = named?.toLowerCase()
  if (kind === 'webdav') return webdav(url, token, fetch)
  if (kind === 'peer' && token !== null) return peer(url, token, fetch)
  // Without a token, a peer lets pages of other origins read it like a gateway and a router.
  if (kind === 'peer') return readOnly(at, gateway(url, fetch), router(url, fetch))
  return kind === 'gateway' ? gateway(url, fetch) : router(url, fetch)
}

const readOnly = (name: string, { reader }: Provider, { names }: Provider): Provider => ({ name, ...(reader ? { reader: { ...reader, name } } : {}), ...(names ? { names: { ...names, name } } : {}) })

export type OpenHow = {
  /** Name of the vault in this origin; each has its own database. */
  readonly name?: string
  /** Null: the providers stored in this browser. */
  readonly at?: readonly Spec[] | null
  /** Store `at` here, sealed with its tokens, for the next opening. */
  readonly keepAt?: boolean
  /** The keys of the wallet or of a recovery phrase. */
  readonly root?: RootKeys | null
  /** A passkey that wraps this browser's keys. */
  readonly passkey?: Opener | null
  /** Keep the keys usable here until `lock`. */
  readonly stay?: boolean
  /** Label of this browser. */
  readonly label?: string
  readonly pointer?: Pointer | null
  /**
   * Create a vault of `root` (or without a wallet) and the keys of this recovery phrase, instead of looking for one. Show its words to the
   * person first: `newRecoveryWords`.
   */
  readonly create?: { readonly recovery: RootKeys | null } | null
  readonly environment?: Environment
}

/** An open vault, and the providers stored for it in this browser. */
export type Opened = { readonly memory: Memory; readonly places: () => Promise<readonly Spec[]>; readonly setPlaces: (places: readonly Spec[]) => Promise<void> }

const asProviders = (places: readonly Spec[]): Provider[] => places.map(one => providerOf(one, (url, init) => fetch(url, init)))

/** Open the vault in this browser. `MemoryError` of kind `locked` if a wallet, recovery phrase or passkey is required. */
export const openMemory = async (how: OpenHow): Promise<Memory> => (await openWithPlaces(how)).memory

/**
 * Return the request of this browser to be added by a device that has the wallet; it contains no secret. This creates its keys, which stay
 * usable here, since nothing else would open them. `pointer`: of the vault.
 */
export async function requestEntry({ name = 'default', label = 'browser', pointer, environment = defaultEnvironment }: { name?: string; label?: string; pointer: Pointer; environment?: Environment }): Promise<{ text: string; words: string[] }> {
  const db = await openDatabase(name)
  const storage = new BrowserStorage(db, name)
  try {
    // Not while another tab opens its vault: its keys would look like leftovers.
    const device = await storage.exclusively('open', async () => (await unlockedDevice(db, environment)) ?? (await openDevice(db, { name: 'nobody', secret: environment.chance(32) }, { label, stay: true, environment })).device)
    return await Memory.request(device, pointer)
  } finally {
    storage.close()
  }
}

/** Callbacks during an opening: its steps, and the vault once it can be read (`Opening.shown`). */
export type Hearing = { readonly progress?: (step: string) => void; readonly shown?: (opened: Opened) => Promise<void> }

/** The same, with access to its providers. */
export async function openWithPlaces(how: OpenHow, { progress, shown }: Hearing = {}): Promise<Opened> {
  const { name = 'default', at = null, keepAt = false, root = null, passkey = null, stay = false, label = 'browser', pointer = null, create = null, environment = defaultEnvironment } = how
  const db = await openDatabase(name)
  const storage = new BrowserStorage(db, name)
  try {
    const explicit = at === null ? null : asProviders(at)
    const opener = root !== null ? openerOfRoot(root) : create?.recovery != null ? openerOfRoot(create.recovery) : passkey
    const staying = opener === null ? await unlockedDevice(db, environment) : null
    if (staying === null && opener === null) throw new MemoryError('locked', 'this vault is locked', 'Unlock it with the wallet, the recovery phrase or the passkey.')
    // One tab at a time, so that no other takes the keys of a device that is being opened for leftovers.
    return await storage.exclusively('open', async () => {
      const { device, undo } = staying === null ? await openDevice(db, opener as Opener, { label, stay, environment }) : { device: staying, undo: null }
      // Until the vault is stored, the providers are those that it is opened with; setting others waits for that.
      let before = at !== null && keepAt ? at : null
      let kept: Promise<unknown> = Promise.resolve()
      const places = async (): Promise<readonly Spec[]> => before ?? keptPlaces(db, device.rows)
      const openedAs = (memory: Memory): Opened => ({
        memory,
        places,
        setPlaces: async next => {
          await kept
          memory.use(asProviders(next))
          await keepPlaces(db, device.rows, next)
        }
      })
      const load = async (): Promise<Memory> => {
        const providers = explicit ?? asProviders(await places())
        // A device that was added needs no root again; the first time, the root enrols this browser.
        const what = { device, storage, providers, environment }
        const telling = { ...(progress ? { progress } : {}), ...(shown ? { shown: (memory: Memory) => shown(openedAs(memory)) } : {}) }
        const memory = create === null ? await Memory.load({ ...what, ...telling, root: (await isKept(db)) ? null : root, pointer }) : await Memory.create({ ...what, root, recovery: create.recovery })
        if (before !== null) await keepPlaces(db, device.rows, before)
        before = null
        return memory
      }
      try {
        const loading = load()
        kept = loading
        return openedAs(await loading)
      } catch (error) {
        // Keys without a vault, as after a wrong passphrase, must not block the right ones; a browser with a pointer may wait to be added.
        if (undo !== null && pointer === null && !(await isKept(db))) await undo()
        throw error
      }
    })
  } catch (error) {
    storage.close()
    throw error
  }
}
