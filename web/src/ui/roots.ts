/** The ways to open a vault, loaded when a person is about to: wallets, key files, recovery phrases. */

import { signingPublic } from '../core/curves.ts'
import { recoverSigner } from '../core/wallet.ts'

export { keysOfWords } from '../core/wallet.ts'
export { findWallets, type FoundWallet, keysOfWallet } from '../wallet/ethereum.ts'
export { keysOfKeyFile } from '../wallet/key_file.ts'

/** Compute the tables of both curves, which are slow the first time, while the person looks for their wallet or phrase. */
export function warmUp(): void {
  signingPublic(new Uint8Array(32))
  // r and s of 1: a valid signature of some key over anything.
  recoverSigner('', Uint8Array.from({ length: 65 }, (_, at) => (at === 31 || at === 63 ? 1 : 0)))
}
