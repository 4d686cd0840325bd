/** Small objects: boxes, names, contents and lists (FORMAT.md 7.8). */

import { fromHex } from '../src/core/bytes.ts'
import { isSmall, parseSmallName, smallBox, smallFile, smallName, smallOfFile, usedSmall } from '../src/core/small_objects.ts'
import type { Judge } from './judging.ts'

export const smallObjects: Judge = (all, court) => {
  for (const row of all.boxes) court.same(smallBox(fromHex(row.anchor)), row.box, row.anchor)
  for (const { name, parts } of all.names) {
    const found = parseSmallName(name)
    court.same(found === null ? null : [found.box, found.label, found.digest], parts, name)
  }
  for (const { name, data, times, sound } of all.contents) {
    const bytes = fromHex(String(data).repeat(times))
    court.same(isSmall(name, bytes), sound, `${name}, ${bytes.length} bytes`)
    const { box, label } = parseSmallName(name) as NonNullable<ReturnType<typeof parseSmallName>>
    if (sound) court.same(smallName(box, label, bytes), name, name)
    else if (bytes.length === 0 || bytes.length > 1 << 20) court.refuses(() => smallName(box, label, bytes), name, 'format')
  }
  for (const { about, boxes, shown, used } of all.lists) court.same([...usedSmall(Object.entries(shown), boxes)], Object.entries(used), about)
  court.same(smallFile(all.files.name), all.files.folder, 'in a folder')
  court.same(smallOfFile(all.files.folder), all.files.name, 'of a file')
}
