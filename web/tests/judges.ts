/** The judge of each file of vectors that the client reproduces, by the file's name. */

import { cids, dagpb } from './content.ts'
import { contexts } from './contexts.ts'
import { folders } from './folders.ts'
import { graphs } from './graphs.ts'
import { blob, clock, index, keysJudge, memoryFile, merge, programEvents, timeline, valueKeys } from './files.ts'
import { Court, type Judge, type Rows } from './judging.ts'
import { rankings } from './rankings.ts'
import { deflate, derivation, ed25519, objects, recovery, walletJudge } from './seals.ts'
import { salvage } from './salvaging.ts'
import { timeRanges } from './time_ranges.ts'
import { cidTrees } from './trees.ts'
import { sessions } from './sessions.ts'
import { smallObjects } from './small_objects.ts'
import { scopeTrees } from './trees_of_scopes.ts'
import { anchorPins, cars, commits, forgedVaults, ipns, ring, scopes, state, tree, values, vaults, view } from './vaults.ts'

export const judges: Readonly<Record<string, Judge>> = {
  anchor_pins: anchorPins,
  blob,
  cars,
  cid_trees: cidTrees,
  cids,
  clock,
  commits,
  context: contexts,
  dagpb,
  deflate,
  derivation,
  ed25519,
  folder: folders,
  forged_vaults: forgedVaults,
  graph: graphs,
  index,
  ipns,
  keys: keysJudge,
  memory_file: memoryFile,
  merge3: merge,
  objects,
  program_events: programEvents,
  ranking: rankings,
  recovery,
  ring,
  salvage,
  scope_trees: scopeTrees,
  scopes,
  sessions,
  small_objects: smallObjects,
  state,
  time_ranges: timeRanges,
  timeline,
  tree,
  value_key: valueKeys,
  values,
  vaults,
  view,
  wallet: walletJudge
}

/** What the judge of one file found: how many rows it looked at, and which fail. */
export type Finding = { readonly file: string; readonly rows: number; readonly fails: readonly string[] }

/** Has the files judged that are named, or all; `read` gives what stands in the file of a name. */
export async function* judged(read: (name: string) => Rows | Promise<Rows>, only: readonly string[] = []): AsyncGenerator<Finding> {
  for (const [name, judge] of Object.entries(judges)) {
    if (only.length > 0 && !only.includes(name)) continue
    const court = new Court()
    await judge(await read(name), court)
    yield { file: `${name}.json`, rows: court.rows, fails: court.fails }
  }
}
