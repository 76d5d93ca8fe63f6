/** Reader threads of passages that an index has at the most. */
const MOST_READERS = 4;
/** The connection that asks /metrics may be kept. */
const OTHERS = 2;

type Targets = Readonly<Record<string, number>>;

/**
 * What a server at rest has open after its load and had not before, beyond what begun readers of passages have: each the
 * passages, and the handles of a thread's event loop. Empty where nothing was left open.
 */
export function leftOpen(before: Targets, after: Targets): string[] {
  const [first, last] = [byKind(before), byKind(after)];
  const begun = last.passages - first.passages;
  const allowed = {
    passages: Math.max(0, MOST_READERS - first.passages),
    pipes: 2 * begun,
    events: 2 * begun,
    others: OTHERS,
  };
  return Object.entries(allowed).flatMap(([kind, most]) => {
    const more = last[kind as keyof typeof last] - first[kind as keyof typeof first];
    return more > most ? [`${more} more ${kind} (at most ${most})`] : [];
  });
}

function byKind(targets: Targets): Record<'passages' | 'pipes' | 'events' | 'others', number> {
  const kinds = { passages: 0, pipes: 0, events: 0, others: 0 };
  for (const [target, count] of Object.entries(targets)) {
    if (target.endsWith('/passages.sqlite')) kinds.passages += count;
    else if (target === 'pipe') kinds.pipes += count;
    else if (/^anon_inode:\[event(?:fd|poll)\]$/.test(target)) kinds.events += count;
    else kinds.others += count;
  }
  return kinds;
}
