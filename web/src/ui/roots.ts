/** What opens a memory, loaded where somebody is about to open one: wallets, key files, recovery words. */

import { signingPublic } from '../core/curves.ts'
import { recoverSigner } from '../core/wallet.ts'

export { keysOfWords } from '../core/wallet.ts'
export { findWallets, type FoundWallet, keysOfWallet } from '../wallet/ethereum.ts'
export { keysOfKeyFile } from '../wallet/key_file.ts'

/** The tables of both curves, which take long the first time, are made while somebody looks for their wallet or words. */
export function warmUp(): void {
  signingPublic(new Uint8Array(32))
  // r and s of 1: a signature that some key made of anything.
  recoverSigner('', Uint8Array.from({ length: 65 }, (_, at) => (at === 31 || at === 63 ? 1 : 0)))
}
