/** Judges the vectors in a page: tests/web/test_vectors.py calls this in each browser. */

import { type Finding, judged } from './judges.ts'

/** What was found in each file of the folder that is served at `where`. */
export async function judgedAt(where: string): Promise<Finding[]> {
  const found: Finding[] = []
  for await (const one of judged(async (name) => (await fetch(`${where}/${name}.json`)).json())) found.push(one)
  return found
}
