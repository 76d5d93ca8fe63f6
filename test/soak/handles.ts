/** The largest number of passage reader threads of an index. */
const MAX_READERS = 4;
/** For the connection that fetches /metrics, which may be kept open. */
const MAX_OTHER_HANDLES = 2;

type Targets = Readonly<Record<string, number>>;

/**
 * The handles that an idle server leaked between two moments, by category; empty if none. A passage reader thread that
 * started in between is no leak: it opens the passages file and the handles of its event loop.
 */
export function leftOpen(before: Targets, after: Targets): string[] {
  const [first, last] = [byCategory(before), byCategory(after)];
  const newReaders = last.passages - first.passages;
  const allowed = {
    passages: Math.max(0, MAX_READERS - first.passages),
    pipes: 2 * newReaders,
    // An eventfd and an epoll; since Node 24 also two io_urings.
    events: 4 * newReaders,
    others: MAX_OTHER_HANDLES,
  };
  return Object.entries(allowed).flatMap(([category, most]) => {
    const more = last[category as Category] - first[category as Category];
    return more > most ? [`${more} more ${category} (at most ${most}): ${grown(before, after, category)}`] : [];
  });
}

/** The targets of a category that are open more often than before. */
function grown(before: Targets, after: Targets, category: string): string {
  return Object.entries(after)
    .filter(([target, count]) => categoryOf(target) === category && count > (before[target] ?? 0))
    .map(([target, count]) => `${target} +${count - (before[target] ?? 0)}`)
    .join(', ');
}

type Category = 'passages' | 'pipes' | 'events' | 'others';

function byCategory(targets: Targets): Record<Category, number> {
  const counts = { passages: 0, pipes: 0, events: 0, others: 0 };
  for (const [target, count] of Object.entries(targets)) counts[categoryOf(target)] += count;
  return counts;
}

function categoryOf(target: string): Category {
  if (target.endsWith('/passages.sqlite')) return 'passages';
  if (target === 'pipe') return 'pipes';
  return /^anon_inode:\[(?:eventfd|eventpoll|io_uring)\]$/.test(target) ? 'events' : 'others';
}
