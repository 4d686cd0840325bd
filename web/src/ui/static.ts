/**
 * The page without a server: the vault is in this browser, opened with its wallet, recovery phrase or passkey, and synced with its
 * providers.
 */

import { html } from 'lit'
import type { OpenHow } from '../open.ts'
import { textOfPointer, type Whereabouts } from '../pointer.ts'
import type { RootKeys } from '../core/wallet.ts'
import { defaultEnvironment } from '../device/device.ts'
import { addOpener, hasDevice, lock, openerOfRoot, openersOf } from '../store/browser_keys.ts'
import { deleteKept, isKept, openDatabase } from '../store/idb.ts'
import { makePasskey, passkeyIds } from '../wallet/passkey.ts'
import type { Call } from '../worker/messages.ts'
import { openRemote, type RemoteMemory, requestRemote } from '../worker/remote.ts'
import workerUrl from '../worker/worker.ts?worker&url'
import { MemoryApp } from './app.ts'
import './browser.ts'
import type { Own } from './browser.ts'
import { Refusal } from './client.ts'
import { MemoryDoor } from './door.ts'
import { LocalClient } from './local_client.ts'
import { fromVault } from './local_vault.ts'
import { ownScript } from './own_scripts.ts'
import type { Typed } from './places_form.ts'
import { sentence } from './view.ts'

const NAME = 'default'
/** Milliseconds after the network returned at which a sync is retried while changes wait. */
const AGAIN = [2_000, 10_000]
/** Milliseconds between two syncs for others' changes, and from a write to its sync. */
const LOOK = 60_000
const REST = 1500

const newWorker = (): Worker => new Worker(ownScript(workerUrl) as unknown as URL, { type: 'module' })

/** A worker whose program is loaded while the person looks for their wallet or recovery phrase. */
let ready: Worker | null = null

async function remote(how: OpenHow): Promise<RemoteMemory> {
  const worker = ready ?? newWorker()
  ready = null
  try {
    return await openRemote(worker, { name: NAME, ...how })
  } catch (error) {
    worker.terminate()
    throw error
  }
}

/** The providers configured by the host of this page. */
function named(): Typed[] {
  const said = document.querySelector<HTMLMetaElement>('meta[name=ipfsmem-places]')?.content ?? ''
  const places = said.split(/\s+/).filter(Boolean).map(at => ({ at, token: '' }))
  return places.length > 0 ? places : [{ at: '', token: '' }]
}

/**
 * Sync after each write, once a minute while the page is visible, and when the network returns; one at a time. Returns the function that
 * stops it.
 */
function syncing(client: LocalClient, memory: RemoteMemory): () => void {
  let [waiting, due, isStuck] = [0, Infinity, false]
  const isWaiting = (): Promise<boolean> => memory.status().then(one => one.unpublished, () => false)
  const sync = async (): Promise<void> => {
    due = Infinity
    await client.sync().catch(() => undefined)
    isStuck = await isWaiting()
  }
  // An earlier sync is not postponed.
  const soon = (rest: number): void => {
    const at = performance.now() + rest
    if (at >= due) return
    clearTimeout(waiting)
    due = at
    waiting = window.setTimeout(() => void sync(), rest)
  }
  // If no provider accepts the waiting changes, each sync would trigger the next.
  const unheard = memory.subscribe(() => void isWaiting().then(does => (does ? soon(isStuck ? LOOK : REST) : undefined)))
  let tries: number[] = []
  // The network is often usable only seconds after its event.
  const back = (): void => {
    tries.forEach(clearTimeout)
    soon(0)
    tries = AGAIN.map(rest => window.setTimeout(() => void isWaiting().then(does => (does ? soon(0) : undefined)), rest))
  }
  window.addEventListener('online', back)
  const turn = setInterval(() => (document.visibilityState === 'visible' ? soon(0) : undefined), LOOK)
  soon(0)
  return () => {
    unheard()
    window.removeEventListener('online', back)
    clearInterval(turn)
    clearTimeout(waiting)
    tries.forEach(clearTimeout)
  }
}

/** No keys stay usable here, in any tab. */
async function locked(): Promise<void> {
  await withKeys(lock)
  bell.postMessage('locked')
  location.reload()
}

/** Delete everything from this browser. */
async function forgotten(): Promise<void> {
  await deleteKept(NAME)
  bell.postMessage('locked')
  location.reload()
}

/** A signal to all tabs of this page. */
const bell = new BroadcastChannel('ipfsmem/page')
bell.onmessage = () => location.reload()

/** Work with this browser's stored keys. */
async function withKeys<T>(work: (db: Awaited<ReturnType<typeof openDatabase>>) => Promise<T>): Promise<T> {
  const db = await openDatabase(NAME)
  try {
    return await work(db)
  } finally {
    db.close()
  }
}

async function newPasskey(root: RootKeys): Promise<() => Promise<void>> {
  const by = openerOfRoot(root)
  if (!(await withKeys(openersOf)).includes(by.name)) throw new Refusal('usage', 'these keys do not unlock the vault in this browser', 'Use the wallet or the recovery phrase that opened it here before.', 400)
  return async () => {
    const added = await makePasskey(defaultEnvironment.chance, 'ipfsmem')
    await withKeys(db => addOpener(db, by, added, defaultEnvironment))
  }
}

function ownOf(memory: RemoteMemory): Own {
  return {
    places: () => memory.keptPlaces(),
    setPlaces: places => memory.setPlaces(places),
    lock: locked,
    link: async () => {
      const at = (await memory.keptPlaces()).map(one => (typeof one === 'string' ? one : one.at))
      return `${location.origin}${location.pathname}#join=${textOfPointer({ ...(await memory.pointer()), at })}`
    },
    readRequest: request => memory.readRequest(request),
    admit: async (request, root) => (await memory.admit(request, root)).notices.map(one => sentence(one.text)).join(' '),
    passkey: 'PublicKeyCredential' in window ? newPasskey : null,
    passkeys: async () => passkeyIds(await withKeys(openersOf)),
    dropPasskey: id => withKeys(db => db.delete('keys', `passkey ${id}`))
  }
}

async function ask({ vault, anchor }: Whereabouts, label: string): ReturnType<typeof requestRemote> {
  const worker = newWorker()
  try {
    return await requestRemote(worker, { name: NAME, label, pointer: { vault, anchor } })
  } finally {
    worker.terminate()
  }
}

function show(memory: RemoteMemory): void {
  const client = new LocalClient(memory, { name: memory.device.label, right: 'write', now: () => Date.now(), persisted: () => navigator.storage.persisted() })
  const app = new MemoryApp()
  app.client = client
  const own = ownOf(memory)
  app.extras = [{ name: 'browser', words: 'This browser', show: place => html`<browser-view .place=${place} .own=${own}></browser-view>` }]
  document.querySelector('memory-door')?.remove()
  document.body.prepend(app)
  const stop = syncing(client, memory)
  // The fetched data is shown before it is stored; if that fails, the page cannot continue.
  void memory.lost.then(error => {
    stop()
    app.remove()
    void begin(new Refusal(error.kind, error.message, error.hint, 507))
  })
  void navigator.storage.persist()
}

/** `failed`: why the vault was closed. */
async function begin(failed: Refusal | null = null): Promise<void> {
  const db = await openDatabase(NAME)
  const [has, kept, openers] = [await hasDevice(db), await isKept(db), await openersOf(db)]
  db.close()
  const door = new MemoryDoor()
  door.failed = failed
  if (has && kept && failed === null) {
    try {
      return show(await fromVault(() => remote({ at: null })))
    } catch (error) {
      if ((error as Refusal).kind !== 'locked') door.failed = error as Refusal
    }
  }
  const pointer = new URLSearchParams(location.hash.slice(1)).get('join') ?? ''
  if (pointer !== '') history.replaceState(null, '', location.pathname)
  Object.assign(door, { ask, pointer, forget: forgotten, isNew: !kept, passkeys: passkeyIds(openers), typed: named(), enter: async (how: OpenHow) => show(await remote(how)) })
  document.body.prepend(door)
  if (ready !== null) return
  ready = newWorker()
  ready.postMessage({ id: 0, do: 'prepare', with: [] } satisfies Call)
}

void begin()
// Without one (no https, a private window) the page works too, and needs the network to open.
void navigator.serviceWorker?.register(ownScript(new URL('service_worker.js', document.baseURI).href) as string, { type: 'classic' }).catch(() => undefined)
