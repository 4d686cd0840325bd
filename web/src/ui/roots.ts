/** What opens a memory, loaded where somebody is about to open one: wallets, key files, recovery words. */

export { keysOfWords } from '../core/wallet.ts'
export { findWallets, type FoundWallet, keysOfWallet } from '../wallet/ethereum.ts'
export { keysOfKeyFile } from '../wallet/key_file.ts'
