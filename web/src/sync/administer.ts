/** The part of an unlocked root in a sync: enrol this device, add another one, and distribute keys to members that lack them. */

import { nextClock } from '../core/clock.ts'
import { signerOf } from '../core/curves.ts'
import { enrol, enrolleeOf, giveKey } from '../core/enrolling.ts'
import type { Ring } from '../core/ring.ts'
import type { RootKeys } from '../core/wallet.ts'
import type { Run } from './run.ts'

/** Return the ring with the statements of an unlocked root: this device, and keys for members that lack them. */
export async function administer(run: Run, ring: Ring, root: RootKeys): Promise<Ring> {
  const { replica, how } = run
  const { device, environment, kept } = replica
  const signer = signerOf(root.adminSeed)
  let grown = await giveKey(ring, signer, environment.chance)
  if (!grown.said.members.has(device.id)) {
    const itself = await enrolleeOf(device.signer, device.box.public, device.label, ring.tag)
    const since = nextClock(kept.clock, environment.now())
    grown = await enrol(grown, signer, itself, { role: 'writer', since, chance: environment.chance })
    run.say('enrolled', `this device is now a member of the vault, as ${device.label}`)
  }
  if (how.enrollee !== undefined) {
    grown = await enrol(grown, signer, how.enrollee, { role: 'writer', since: nextClock(kept.clock, environment.now()), chance: environment.chance })
    run.say('let-in', `${how.enrollee.label} is a member of the vault now`)
  }
  return grown
}
