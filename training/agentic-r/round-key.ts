/** The name of a round in maps: ids may have any character but NUL. */
export function roundKey(id: string, roundIndex: number): string {
  return `${id}\0${roundIndex}`;
}
