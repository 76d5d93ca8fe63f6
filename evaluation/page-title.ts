/**
 * The key by which titles of pages are compared: without regard to case, and to spaces or underscores, since some sets write
 * `Ed_Wood_(film)`; with `&amp;` read as `&`, as in titles of HotpotQA. Titles that differ in accents are different pages.
 */
export function titleKey(title: string): string {
  return title
    .replaceAll('&amp;', '&')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .normalize('NFC')
    .replace(/[\s_]+/gu, ' ')
    .trim()
    .toLowerCase();
}
