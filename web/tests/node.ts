/** Judges the vectors in the folder that is named, in Node; one line of JSON for each file: how many rows, and which fail. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { judged } from './judges.ts'

// The vectors were made at days of UTC.
process.env['TZ'] = 'UTC'

const [, , folder = '.', ...only] = process.argv
for await (const found of judged((name) => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')), only)) {
  console.log(JSON.stringify(found))
}
