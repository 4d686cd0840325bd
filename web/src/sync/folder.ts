/** A shared folder of packs, pins and records as a read-only provider: for a vault on a USB stick, or in files that a person chose. */

import type { Bytes } from '../core/bytes.ts'
import { type Files, SharedFolder } from '../core/folder.ts'
import type { Provider } from './provider.ts'

/** `name`: for people; `files`: everything in the folder by path, with `/` between names. */
export function folderProvider(name: string, files: Files): Provider {
  const folder = new SharedFolder(files)
  return {
    name,
    reader: { name, blocks: async cids => new Map(cids.map(cid => [cid, folder.block(cid)] as const).filter((one): one is [string, Bytes] => one[1] !== null)) },
    names: { name, record: async one => folder.record(one) },
    pins: async one => folder.pins(one).map(pin => pin.cid)
  }
}
