/** The published data of a device: its signed counter, its commit, and the tree of a root (FORMAT.md 6 and 7). Sealed vaults only. */

import type { Blocks } from './blocks.ts'
import { base64url, byCodePoints, type Bytes, canonical, hex, join, need, sha256, utf8 } from './bytes.ts'
import { rawCid } from './cid.ts'
import type { Signer } from './curves.ts'
import type { Put, Target } from './dagpb.ts'
import { objectPaths } from './layout.ts'
import type { Ring } from './ring.ts'
import { type EpochKey, ObjectType } from './sealed.ts'
import { type Seen, seenMessage, type State } from './state.ts'
import { buildTree, nodePath, sealedAs, StateCache } from './tree.ts'
import { putFile, putTree } from './unixfs.ts'

const NAME_DIGITS = 40

/** Sign a counter with its random number. */
export async function signedPair(signer: Signer, dev: string, n: number, r: string, tag: Bytes): Promise<Seen> {
  return { n, r, s: base64url(await signer.sign(seenMessage(dev, n, r, tag))) }
}

export type CommitBody = {
  readonly c: number
  readonly dev: string
  readonly h: string
  readonly prev: readonly string[]
  readonly state: State
  readonly digest: string
}

export type MadeCommit = { readonly json: Bytes; readonly signature: Bytes; readonly hash: string }

/** Make the signed JSON of a commit over a state whose counters are all signed. */
export async function makeCommit(signer: Signer, ring: Ring, keyring: Bytes, body: CommitBody): Promise<MadeCommit> {
  const key = needSealing(ring)
  const ctx = Object.fromEntries([...body.state.seen].map(([dev, { n, r, s }]) => [dev, [n, r, s]]))
  const json = utf8(
    canonical({
      c: body.c,
      ctx,
      dev: body.dev,
      ek: key.id,
      h: body.h,
      prev: [...new Set(body.prev)].sort(byCodePoints),
      ring: hex(sha256(keyring)),
      state: body.digest,
      v: 1,
      vault: hex(ring.tag)
    })
  )
  return { json, signature: await signer.sign(join('ipfsmem/v1/commit', [0], json)), hash: hex(sha256(json)) }
}

function needSealing(ring: Ring): EpochKey {
  need(!ring.plain, 'vault', 'this client only reads plain vaults; it publishes sealed ones')
  const key = ring.sealing
  need(key !== null, 'member', 'no key may seal now, or this device does not have it: an admin must unlock')
  return key
}

/** Hashes of all objects that a state names. */
export function objectsOf(state: State): Map<string, number> {
  const out = new Map<string, number>()
  for (const entry of state.entries.values()) {
    for (const value of Object.values(entry)) for (const loc of [value.loc, value.base]) if (loc !== undefined) out.set(loc[1], loc[2])
  }
  return out
}

/** Make the root for a commit and its ring; it names the objects that are here. Returns its CID; its blocks go to `put`. */
export function buildRoot(ring: Ring, keyring: Bytes, commit: MadeCommit, state: State, blocks: Blocks, put: Put, known: StateCache = new StateCache()): string {
  const key = needSealing(ring)
  const files = new Map<string, Target>()
  files.set('keyring.json', putFile(keyring, put))
  files.set('head.ipm', putFile(key.seal(ObjectType.commit, '', join(commit.signature, commit.json)), put))
  const { nodes, hashes } = buildTree(state.entries, known)
  /** Parts made before that are here are reused: equal nodes are sealed to equal bytes. */
  const again = (path: string, what: string, make: () => Target): Target => {
    const before = known.made(path, what)
    const to = before !== null && blocks.peek(before.cid.text) !== null ? before : make()
    known.noteMade(path, what, to)
    return to
  }
  for (const [prefix, node] of nodes) {
    const path = `${nodePath(prefix)}.ipm`
    files.set(path, again(path, sealedAs(key, hashes.get(prefix) as string), () => putFile(key.seal(ObjectType.node, prefix, node), put)))
  }
  // Of two that share a name it is that of the lesser hash.
  const held = new Map<string, { hash: string; size: number }>()
  for (const [hash, size] of [...objectsOf(state)].sort(([a], [b]) => byCodePoints(b, a))) {
    const data = blocks.peek(rawCid(hash).text)
    if (data !== null && data.length === size) held.set(hash.slice(0, NAME_DIGITS), { hash, size })
  }
  for (const path of objectPaths([...held.values()].map(one => one.hash))) {
    const { hash, size } = held.get(path.slice(-NAME_DIGITS)) as { hash: string; size: number }
    files.set(path, { cid: rawCid(hash), size: BigInt(size) })
  }
  return putTree(files, put, [], { folder: again }).cid.text
}
