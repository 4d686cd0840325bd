/** Judges the vectors in the folder that is named, in Node; one line of JSON for each file: how many rows, and which fail. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { judges } from './judges.ts'
import { Court } from './judging.ts'

const [, , folder = '.', ...only] = process.argv
for (const [name, judge] of Object.entries(judges)) {
  if (only.length > 0 && !only.includes(name)) continue
  const court = new Court()
  await judge(JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')), court)
  console.log(JSON.stringify({ file: `${name}.json`, rows: court.rows, fails: court.fails }))
}
