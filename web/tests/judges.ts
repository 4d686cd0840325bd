/** The judge of each file of vectors that the client reproduces, by the file's name. */

import { cids, dagpb } from './content.ts'
import { blob, clock, index, keysJudge, memoryFile, merge, programEvents, sessions, timeline } from './files.ts'
import type { Judge } from './judging.ts'
import { deflate, derivation, ed25519, objects, recovery, walletJudge } from './seals.ts'
import { cidTrees } from './trees.ts'
import { anchorPins, cars, commits, ipns, ring, scopes, state, tree, values, vaults, view } from './vaults.ts'

export const judges: Readonly<Record<string, Judge>> = {
  anchor_pins: anchorPins,
  blob,
  cars,
  cid_trees: cidTrees,
  cids,
  clock,
  commits,
  dagpb,
  deflate,
  derivation,
  ed25519,
  index,
  ipns,
  keys: keysJudge,
  memory_file: memoryFile,
  merge3: merge,
  objects,
  program_events: programEvents,
  recovery,
  ring,
  scopes,
  sessions,
  state,
  timeline,
  tree,
  values,
  vaults,
  view,
  wallet: walletJudge
}
