/** Warm-up on made-up data while the person looks for their wallet: computes curve tables, and lets the engine compile the code. */

import { utf8 } from '../core/bytes.ts'
import { boxKeyOf, isSigningKey, sealBox, sign, signingPublic, verify, openBoxWith } from '../core/curves.ts'
import { parseFile } from '../core/memory_file.ts'
import { EpochKey, ObjectType } from '../core/sealed.ts'

const TIMES = 40

export async function warmUp(): Promise<void> {
  const seed = new Uint8Array(32).fill(7)
  const [key, message] = [signingPublic(seed), utf8('nothing')]
  isSigningKey(key)
  await verify(key, message, sign(seed, message))
  const box = boxKeyOf(seed)
  await openBoxWith(sealBox(message, box.public, seed), box)
  const epoch = new EpochKey(1, seed, seed.subarray(0, 16))
  const text = `---\nname: Nothing\ndescription: of anybody\ntags: [a, b]\n---\n\n${'Nothing. '.repeat(120)}\n`
  for (let turn = 0; turn < TIMES; turn++) parseFile(epoch.open(ObjectType.memory, 'nothing', epoch.seal(ObjectType.memory, 'nothing', text)))
}
