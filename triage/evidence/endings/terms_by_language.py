"""Terms of failing by language, as alternatives of an expression that is searched without regard to case."""

from __future__ import annotations

TERMS_BY_LANGUAGE: dict[str, str] = {
    "German": r"fehler\w*|fehlgeschlagen|gescheitert|abbruch|abgebrochen|abgestürzt|absturz|abgelehnt|beschädigt|"
    r"defekt|kaputt|zerstört|beendet|verloren|verweigert|unlesbar|unerreichbar|unterbrochen|ungültig\w*|erschöpft|"
    r"fehlt|fehlen|fehlend\w*|keine (?:antwort|verbindung|rückmeldung)|"
    r"nicht (?:gefunden|gemeldet|erreichbar|lesbar|möglich|verfügbar|geöffnet)",
    "French": r"erreur\w*|échec|échoué|arrêt\w*|interrompu\w*|impossible|introuvable|illisible|injoignable|invalide|"
    r"refusée?|absente?|manquante?|épuisée?|expirée?|saturée?|pleine?|perdue?|corrompue?|panne|ne répond (?:plus|pas)",
    "Spanish": r"errores|fallo|fallos|falló|fallida|abortad[oa]|agotad[oa]|ausente|dañad[oa]|detenid[oa]|ilegible|"
    r"imposible|interrumpid[oa]|perdid[oa]|perdió|rechazad[oa]|vencid[oa]|no (?:responde|se pudo|se encontr\w+)",
    "Portuguese": r"erro|falha|falhou|abortado|corrompid[oa]|esgotad[oa]|ilegível|interrompid[oa]|inválid[oa]|perdeu|"
    r"recusad[oa]|não (?:responde|encontrad[oa]|foi possível)",
    "Italian": r"errore|fallit[oa]|fallimento|arresto|danneggiat[oa]|esaurit[oa]|illeggibile|interrott[oa]|mancante|"
    r"pers[oa]|rifiutat[oa]|scadut[oa]|non (?:risponde|trovat[oa]|riuscit[oa])",
    "Dutch": r"fout|mislukt|afgebroken|beschadigd|geweigerd|gestopt|onbereikbaar|ontbreekt|onleesbaar|verbroken|"
    r"verlopen|antwoordt niet|niet (?:gevonden|bereikbaar|leesbaar)",
    "Swedish": r"fel|misslyckades|avbröts|avbruten|kraschade|hittades inte|svarar inte|skadad|nekad",
    "Polish": r"błąd|błęd\w*|przerwan\w*|odrzucon\w*|uszkodzon\w*|utracon\w*|zatrzyman\w*|"
    r"nie (?:odpowiada|znaleziono|udało|można)",
    "Russian": r"ошибк\w*|сбой|сбоя|прерван\w*|аварийн\w*|не удалось|отказ\w*|недоступ\w*|исчерпан\w*|нет места|"
    r"повреж\w*|потерян\w*|не (?:отвечает|найден\w*)",
    "Turkish": r"hata\w*|başarısız|bozuk|bulunamadı|durduruldu|kesildi|reddedildi|yanıt vermiyor",
}
# Without blanks between words, and with their own negations.
CJK_TERMS = "|".join(
    (
        "错误|錯誤|失败|失敗|中止|中断|中斷|异常|異常|崩溃|崩潰|终止|不匹配|不一致|不足|不可用|超时|无法|無法|丢失|损坏|破損|缺失|溢出|越界|"
        "拒绝|拒絕|找不到|无响应|未响应|断开",
        "終了しました|強制終了|エラー|例外|できません|応答しません|応答なし|応答がありません|見つかりません|拒否|切断|破棄",
        "停止|오류|실패|중단|강제 종료|예외|응답 없|응답하지 않|찾을 수 없|거부|부족|손상|끊어|끊김",
    )
)
