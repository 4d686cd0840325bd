/** The client as a library: an ES module for pages and apps. */

import type { Provider } from './sync/provider.ts'

export { keysOfSecret, keysOfWords, newRecoveryWords, type RecoveryWords, type RootKeys, wordsOfSecret } from './core/wallet.ts'
export { type Device, defaultEnvironment, type Environment, volatileDevice } from './device/device.ts'
export { type ErrorKind, MemoryError } from './device/errors.ts'
export * from './memory.ts'
export { openMemory, type OpenHow, providerOf, type Spec } from './open.ts'
export { addOpener, hasDevice, lock, type Opener, openersOf, openerOfPasskey, openerOfRoot } from './store/browser_keys.ts'
export { BrowserStorage, openDatabase } from './store/idb.ts'
export { type DeviceStorage, VolatileStorage } from './store/device_storage.ts'
export { gateway, router } from './sync/gateways.ts'
/** A shared folder's files by path as a read-only provider; its module is loaded on first use. */
export const folderProvider = async (name: string, files: ReadonlyMap<string, Uint8Array>): Promise<Provider> => (await import('./sync/folder.ts')).folderProvider(name, files)
export { peer } from './sync/peer.ts'
export type { BeginHow } from './sync/beginning.ts'
export type { Provider } from './sync/provider.ts'
export type { Notice, Pointer, SyncHow, SyncReport } from './sync/syncing.ts'
export { accountOf, type EthereumProvider, findWallets, type FoundWallet, keysOfWallet } from './wallet/ethereum.ts'
export { makePasskey, passkeyIds, usePasskey } from './wallet/passkey.ts'
export { openRemote, type RemoteMemory } from './worker/remote.ts'
