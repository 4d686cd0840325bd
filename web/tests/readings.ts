/** Reads each whole vault of a file as a new device does; one line of JSON for each: what it saw, or the error of a reader that failed. */

import { readFileSync } from 'node:fs'
import { readVault } from './vaults.ts'

const [, , file = ''] = process.argv
const all = JSON.parse(readFileSync(file, 'utf8'))
for (const row of all.cases) {
  try {
    const { by_rule: _, ...seen } = (await readVault(all, row)) as Record<string, unknown>
    console.log(JSON.stringify(seen))
  } catch (error) {
    console.log(JSON.stringify({ fault: String(error) }))
  }
}
