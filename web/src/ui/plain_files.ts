/** A vault as plain files in a zip, the tree that `ipfsmem export --zip` writes and `ipfsmem import` accepts (FORMAT.md 1.6). */

import { zipSync } from 'fflate'
import { type Bytes, utf8 } from '../core/bytes.ts'
import type { Behind } from './local_vault.ts'

/** The earliest time in a zip; the real one is private. */
const EARLIEST = new Date(1980, 0, 1)

/** The bytes of the zip. */
export async function savedAs(memory: Behind): Promise<Bytes> {
  const files = Object.entries(await memory.exportFiles())
  return zipSync(Object.fromEntries(files.map(([path, text]) => [path, utf8(text)])), { mtime: EARLIEST })
}
