// Holds this reader against the vectors of single rules, `node vectors.mjs FOLDER [NAME...]`: prints for each file how many rows there are,
// and each that does not agree.

import { readFileSync } from 'node:fs'
import { join as path } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Refused, canonical, fromB64, hex, sha256, unlessRefused } from './bytes.mjs'
import { Blocks, folderOfOne, ipnsName, keyOfName, readCar } from './content.mjs'
import { merge3, mergeFields, mergeLines, parseFile, renderFile } from './files.mjs'
import { newest, readRecord, target } from './ipns.mjs'
import * as keys from './keys.mjs'
import { Ring, openKeyring, parseKeyring, readRequest, statement } from './ring.mjs'
import { EpochKey, inflate, pad } from './sealed.mjs'
import { itemsOf, tokenOf } from './sessions.mjs'
import * as state from './state.mjs'
import { cardOf, foreignId, instant, lineOf, ownView, parseLine, union, view } from './view.mjs'

const [, , folder, ...only] = process.argv
const fails = []
let count = 0

function same(got, wanted, what) {
  count++
  if (!isDeepStrictEqual(got, wanted)) fails.push(`${what}: ${JSON.stringify(got)?.slice(0, 300)} is not ${JSON.stringify(wanted)?.slice(0, 300)}`)
}

/** `ok`, or why it was refused. */
function verdict(read) {
  try {
    read()
    return 'ok'
  } catch (error) {
    if (error instanceof Refused) return error.kind
    throw error
  }
}

const refuses = (read, what) => same(verdict(read) === 'ok', false, what)
const un = text => Buffer.from(text, 'hex')
const payload = row => (row.payload.hex !== undefined ? un(row.payload.hex) : Buffer.from(row.payload.text.repeat(row.payload.times ?? 1)))
const sorted = object => Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
const texts = all => hash => (all[hash] === undefined ? null : Buffer.from(all[hash]))

const files = {
  wallet(all) {
    for (const row of all.key_requests) same(keys.request(row.address, row.vault, row.key_number), row.text, 'request')
    for (const row of all.accepted.filter(row => row.name === 'as signed')) {
      same(hex(keys.walletSignature(all.private_keys[0], row.text)), row.rs ?? row.signature.slice(0, 128), 'signature')
    }
  },

  derivation(all) {
    // Argon2id takes seconds in JavaScript: one row with a passphrase is enough to see that it is asked in the same way.
    const stretched = all.wallet.find(row => row.passphrase !== null)
    for (const row of all.wallet.filter(row => row.passphrase === null || row === stretched)) {
      const made = keys.keysOfSecret(un(row.rs), row.address, row.vault, row.key_number, row.passphrase)
      same([hex(made.adminSeed), made.check], [row.admin_seed, row.check], `keys of ${row.address}`)
    }
    for (const row of all.walletless) {
      same(hex(keys.keysOfSecret(un(row.secret), '00'.repeat(20), row.vault, row.key_number).adminSeed), row.admin_seed, 'keys of no wallet')
    }
  },

  recovery(all) {
    for (const row of all.recovery) same(hex(keys.keysOfWords(row.words).adminSeed), row.admin_seed, 'words')
    for (const row of all.refused) refuses(() => keys.keysOfWords(row.words ?? row.text ?? row), 'not words')
  },

  ed25519(all) {
    for (const row of all.signatures) same(keys.verify(un(row.public), un(row.message), un(row.signature)), row.valid, row.name)
    for (const row of all.keys) same(keys.isSigningKey(un(row.public)), row.ok, row.name)
    for (const row of all.box_keys) same(keys.isBoxKey(un(row.public)), row.ok, row.name)
  },

  objects(all) {
    for (const [size, padded] of all.pad) same(pad(size), padded, `pad ${size}`)
    const key = row => new EpochKey(row.epoch, un(row.ek ?? all.ek), un(row.vault_tag ?? all.vault_tag))
    for (const row of all.ek_ids) same(key(row).id, row.id, 'EK id')
    for (const row of all.sealed.filter(row => row.object)) same(key(row).open(row.type, row.ctx, un(row.object)), payload(row), 'object')
    for (const row of all.refused) refuses(() => key(row).open(row.type, row.ctx, un(row.object)), row.name)
  },

  deflate(all) {
    for (const row of all.streams) same(unlessRefused(() => inflate(un(row.stream))), row.payload && payload(row), row.name)
    const key = new EpochKey(all.epoch, un(all.ek), un(all.vault_tag))
    for (const row of all.objects) same(unlessRefused(() => key.open(row.type, all.ctx, un(row.object))), row.payload && payload(row), row.name)
  },

  cids(all) {
    for (const row of all.ipns_names) same([ipnsName(un(row.ed25519_public)), hex(keyOfName(row.name))], [row.name, row.ed25519_public], 'name')
    for (const row of all.refused_ipns_names) refuses(() => keyOfName(row.name), row.about)
  },

  cars(all) {
    const first = all.valid[0]
    const blocks = new Blocks()
    same(readCar(un(first.car), blocks), first.roots[0], first.about)
    same([...blocks.held].map(([cid, data]) => [cid, hex(data)]), first.blocks, first.about)
    for (const row of all.refused) refuses(() => readCar(un(row.car), new Blocks()), row.about)
  },

  ipns(all) {
    for (const row of [...all.make, ...all.accept]) {
      const read = unlessRefused(() => readRecord(row.name, un(row.record)))
      same(read?.value, row.value, row.why)
      if (row.valid_until_ns) same(String(read?.validity), String(row.valid_until_ns), row.why)
    }
    // Time is nobody's reason to refuse here, and a value of another form leads nowhere.
    for (const row of all.refuse.filter(row => !row.why.startsWith('ran out') && !row.why.startsWith('runs out'))) {
      same(unlessRefused(() => target(readRecord(row.name, un(row.record)))), null, row.why)
    }
    for (const row of all.select) {
      const read = row.records.map(one => unlessRefused(() => readRecord(all.make[0].name, un(one))))
      if (read.every(Boolean)) same(hex(newest(read).bytes), row.records[row.best], row.why)
    }
  },

  anchor_pins(all) {
    for (const row of all.roots.filter(row => row.ring_root)) same(folderOfOne(Buffer.from(all.keyrings[row.keyring])), row.ring_root, row.name)
  },

  memory_file(all) {
    for (const row of all.read) {
      const read = parseFile(Buffer.from(row.file))
      same([read.fields, read.body, renderFile(read)], [row.fields, row.body, row.rendered], row.about)
    }
    for (const row of all.render) same(renderFile(row), row.file, row.about)
    for (const row of all.bad) refuses(() => parseFile(un(row.file_hex)), row.about)
  },

  merge3(all) {
    for (const row of all.lines) same(mergeLines([...row.base], [...row.a], [...row.b])?.join('') ?? null, row.merged, 'lines')
    for (const row of all.fields) same(mergeFields(row.base, row.a, row.b), row.merged, row.why)
    for (const row of all.memories) same(merge3(...[row.base, row.a, row.b].map(one => Buffer.from(one)))?.toString() ?? null, row.merged, row.why)
    for (const { n, m, clean } of all.limit.cases) {
      const base = Array.from({ length: n }, (_, i) => `x${i}`)
      same(mergeLines(base, [...Array(m - n).fill('a'), ...base], [...base, 'b']) !== null, clean, `${n} x ${m}`)
    }
  },

  sessions(all) {
    for (const row of all.tokens) same(tokenOf(row.session), row.token, `token of ${row.session}`)
    for (const row of all.refused_names) refuses(() => tokenOf(row.text), row.why)
    for (const row of all.sessions) same(itemsOf(row.session, row.parts), row.items, row.name)
  },

  timeline(all) {
    for (const row of all.instants) same(new Date(instant(row.ts)).toISOString(), row.normal, row.ts)
    for (const ts of all.bad_instants) same(instant(ts), null, ts)
    for (const row of all.parse) same(lineOf(parseLine(Buffer.from(un(row.line_hex).toString('latin1').replace(/^[ \t\r]+|[ \t\r]+$/g, ''), 'latin1'), '2026-04-15')), row.event_line, 'parse')
    for (const row of all.unions) same(union(row.sources), row.lines, 'union')
    for (const row of all.lines) same([lineOf(row.event), foreignId(row.event)], [row.line, row.foreign_id], 'line')
  },

  scopes(all) {
    for (const row of all.names) {
      const { scope, type, ctx } = state.readName(row.name)
      same([scope, type, ctx], [row.scope, row.type, row.ctx], row.name)
    }
    for (const name of all.refused_names) refuses(() => state.readName(name), name)
    const one = json => cardOf({ 'aaaaaaaaaaaaaaaa-1': { kind: 'live', h: '0'.repeat(16), b: [], body: 'x' } }, () => Buffer.from(json)).card
    for (const row of all.cards) same(canonical(one(row.json)), row.json, 'card')
    for (const row of all.refused_cards) same(one(row.json), null, row.why)
    for (const row of all.merges.cases) {
      const { card, forgotten } = cardOf(row.entry, texts(all.merges.texts))
      same([card && canonical(card), forgotten], [row.card, row.forgotten], row.why)
    }
  },

  values(all) {
    const valid = row =>
      keys.verify(un(all.public), state.valueMessage(row.entry, row.dot, row.value, un(all.vault)), Buffer.from(row.value.s, 'base64url'))
    for (const row of all.signed) {
      same(verdict(() => state.checkEntry(row.entry, { [row.dot]: row.value })), 'ok', row.entry)
      same(valid(row), true, row.entry)
    }
    for (const row of all.not_valid) same(valid(row), false, row.why)
    for (const row of all.refused) refuses(() => state.checkEntry(row.entry, { [row.dot]: row.value }), row.why)
    refuses(() => state.checkEntry('m/k', all.five_dots_of_one_device), 'five dots')
    same(hex(state.seenMessage(all.device, all.seen.n, all.seen.r, un(all.vault))), all.seen.message, 'seen')
  },

  tree(all) {
    const built = new Map()
    for (const row of all.trees) {
      const tree = state.buildTree(row.names.map(name => [name, all.entries[row.entry]]))
      built.set(row.name, tree.nodes)
      same(tree.digest, row.digest, row.name)
      const found = [...tree.nodes].map(([prefix, text]) => [`${state.nodePath(prefix)}.ipm`, hex(sha256(text))])
      same(sorted(Object.fromEntries(found)), sorted(row.files), row.name)
      same(state.readTree(tree.digest, prefix => Buffer.from(tree.nodes.get(prefix))).size, row.names.length, row.name)
    }
    const others = built.get('65 entries are not')
    for (const row of all.refused) {
      const node = prefix => row.nodes[prefix] ?? (row.without?.includes(prefix) ? undefined : others.get(prefix))
      refuses(() => state.readTree(row.digest, prefix => (node(prefix) === undefined ? null : Buffer.from(node(prefix)))), row.name)
    }
  },

  state(all) {
    const read = one => ({ entries: new Map(Object.entries(one.entries)), seen: new Map(Object.entries(one.ctx).map(([dev, n]) => [dev, { n, r: '' }])) })
    const shown = one => ({ ctx: Object.fromEntries([...one.seen].map(([dev, pair]) => [dev, pair.n])), entries: Object.fromEntries(one.entries) })
    for (const row of all.joins) same(canonical(shown(state.joinStates(read(row.mine), read(row.theirs)))), canonical(row.joined), 'join')
    for (const row of all.room) same(Object.keys(state.fitting(row.entry, id => row.let_in[id], row.most)).sort(), row.kept, row.why)
    for (const row of all.clashes) same(verdict(() => state.joinStates(read(row.mine), read(row.theirs))), 'held', row.why)
  },

  view(all) {
    for (const row of all.views) {
      const at = hash => (row.at_hand.includes(hash) ? texts(all.texts)(hash) : null)
      const got = view('tone', row.entry, at, value => at(value.base?.[1]))
      same(
        [got.shown?.toString() ?? null, got.dots, got.merged, got.forgotten, got.conflicts, got.hidden, got.notFetched],
        [row.shown, row.dots, row.merged, row.forgotten, row.conflicts, row.hidden, row.not_fetched],
        row.why
      )
    }
    const mine = id => all.persons[id] === all.reader
    for (const row of all.own_views) {
      const at = texts(all.texts)
      const isOwn = (dot, value) => mine(dot.slice(0, 16)) && (value.of === undefined || mine(value.of))
      const got = ownView('tone', row.entry, isOwn, at, value => at(value.base?.[1]))
      same(
        [got.shown?.toString() ?? null, got.dots, got.merged, got.forgotten, got.conflicts, got.others, got.unheeded],
        [row.shown, row.dots, row.merged, row.forgotten, row.conflicts, row.others, row.unheeded],
        row.why
      )
    }
  },

  ring(all) {
    const secrets = new Map(all.parties.map(one => [one.name, un(one.box_secret)]))
    const rings = new Map()
    for (const row of all.rings) {
      const file = parseKeyring(Buffer.from(row.keyring))
      if (file.plain) rings.set(row.name, openKeyring(file))
      for (const name of row.opened_by) rings.set(row.name, openKeyring(file, secrets.get(name)))
      for (const name of row.not_opened_by) same(openKeyring(file, secrets.get(name)).shut, true, `${row.name}, by ${name}`)
      evaluation(rings.get(row.name), row.view, row.name)
    }
    const hashes = ring => ring.statements.map(one => one.hash)
    for (const row of all.joins) same(hashes(rings.get(row.a).join(rings.get(row.b))), hashes(rings.get(row.result)), row.result)
    for (const row of all.evaluations) {
      const said = row.statements.map(hash => statement(all.statements[hash], un(all.vault)))
      evaluation(new Ring(un(all.vault), false, said, []), row.view, row.name)
    }
    for (const row of all.refused_keyrings) {
      const opened = unlessRefused(() => openKeyring(parseKeyring(Buffer.from(row.keyring)), secrets.get('laptop')))
      same(opened === null || opened.shut, true, row.name)
    }
    same(verdict(() => readRequest(Buffer.from(all.request.text), un(all.vault))), 'ok', 'request')
  },

  commits(all) {
    for (const kind of ['sealed', 'plain']) {
      const keyring = Buffer.from(all[kind].keyring)
      const ring = openKeyring(parseKeyring(keyring), un(all.box_secret))
      const read = row => state.readCommit(row.zeros === undefined ? fromB64(row.head) : Buffer.alloc(row.zeros), ring, keyring)
      for (const row of all[kind].valid) {
        const commit = unlessRefused(() => read(row))
        same([commit?.hash, commit?.lacking], [row.digest, row.lacking], row.name)
      }
      for (const row of all[kind].refused) same(verdict(() => read(row)), row.why, row.name)
    }
  }
}

function evaluation(ring, wanted, name) {
  const { said } = ring
  const ids = test => [...said.family.keys()].filter(test).sort()
  const got = {
    anchors: said.anchors().sort(),
    asked: [...said.asked].sort(),
    ek_names: [...said.names].sort(),
    families: sorted(Object.fromEntries(said.family)),
    given_up: ids(id => said.givenUp.has(id)),
    kept_statement_hashes: ring.statements.map(one => one.hash),
    next_epoch: said.nextEpoch,
    persons: sorted(Object.fromEntries(said.persons)),
    put_out_by: sorted(
      Object.fromEntries(said.putOut.map(([, id]) => [id, [...new Set(said.putOut.filter(one => one[1] === id).map(([admin]) => admin))].sort()]))
    ),
    ranks: Object.fromEntries(Object.keys(wanted.ranks).map(id => [id, said.letIn(id)[0]])),
    revoked: ids(id => said.revoked.has(said.family.get(id))),
    roots: [...said.roots].sort(),
    seals: said.seals,
    sign_keys: sorted(Object.fromEntries(said.keysOf))
  }
  for (const field of Object.keys(got)) same(got[field], ['anchors', 'roots'].includes(field) ? [...wanted[field]].sort() : wanted[field], `${name}: ${field}`)
  const members = [...said.members.values()].map(one => [one.id, { anchor: one.anchor, box: one.box, family: one.familyId, kind: one.kind, label: one.label, role: one.role, sign: one.sign }])
  const theirs = Object.entries(wanted.members).map(([id, { rank, ...one }]) => [id, one])
  same(sorted(Object.fromEntries(members)), sorted(Object.fromEntries(theirs)), `${name}: members`)
}

for (const [name, judge] of Object.entries(files)) {
  if (only.length && !only.includes(name)) continue
  count = 0
  judge(JSON.parse(readFileSync(path(folder, `${name}.json`), 'utf8')))
  console.log(JSON.stringify({ file: `${name}.json`, rows: count, fails: fails.splice(0) }))
}
