//! What the claims of a token have to say.

use std::time::Duration;

use super::algorithm::JwtAlgorithm;
use super::claims::JwtClaims;
use super::token::JwtError;

/// Rules for the tokens that are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtRules {
    /// Accepted values of `iss`; empty for any.
    pub issuers: Vec<String>,
    /// Values of `aud`, of which a token has to have one; empty for any.
    pub audiences: Vec<String>,
    /// How far the clocks of both sides may differ.
    pub leeway: Duration,
    /// Accepted algorithms.
    pub algorithms: Vec<JwtAlgorithm>,
    /// Further claims that a token has to have.
    pub required: Vec<RequiredClaim>,
}

/// A claim that a token has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredClaim {
    /// Its name, or its path such as `realm_access.roles`.
    pub name: String,
    /// Values, of which it has to be one, or an array with one; empty for any.
    pub values: Vec<String>,
}

/// The time in which a token holds, the leeway included, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JwtValidity {
    from: f64,
    until: f64,
}

impl JwtValidity {
    /// Holds until that time, in seconds since 1970.
    pub fn until(until: f64) -> Self {
        Self {
            from: f64::NEG_INFINITY,
            until,
        }
    }

    /// Whether it holds at `now`, in seconds since 1970.
    pub fn holds_at(&self, now: f64) -> bool {
        self.from <= now && now < self.until
    }
}

impl JwtRules {
    /// Checks the claims of a token, in the order of RFC 7519, section 4.1; returns when they hold.
    ///
    /// - `now`: in seconds since 1970.
    pub fn check(&self, claims: &JwtClaims, now: f64) -> Result<JwtValidity, JwtError> {
        let issuer = claims.text("iss");
        let is_issued = issuer.is_some_and(|it| self.issuers.iter().any(|one| one == it));
        if !self.issuers.is_empty() && !is_issued {
            return Err(JwtError::Issuer);
        }
        if !self.audiences.is_empty() && !claims.is_any_of("aud", &self.audiences) {
            return Err(JwtError::Audience);
        }
        let validity = self.validity(claims)?;
        if now >= validity.until {
            return Err(JwtError::Expired);
        }
        if now < validity.from {
            return Err(JwtError::Early);
        }
        let unmet = self.required.iter().find(|it| !it.is_met(claims));
        match unmet {
            Some(unmet) => Err(JwtError::Claim(unmet.name.clone())),
            None => Ok(validity),
        }
    }

    fn validity(&self, claims: &JwtClaims) -> Result<JwtValidity, JwtError> {
        let leeway = self.leeway.as_secs_f64();
        let expires = claims.date("exp").ok_or(JwtError::NoExpiry)?;
        // JSON has no NaN, and a date that is no number is not to be ignored.
        let from = match claims.date("nbf") {
            Some(from) => from - leeway,
            None if claims.has("nbf") => return Err(JwtError::Early),
            None => f64::NEG_INFINITY,
        };
        Ok(JwtValidity {
            from,
            until: expires + leeway,
        })
    }
}

impl RequiredClaim {
    /// Whether claims have it.
    pub fn is_met(&self, claims: &JwtClaims) -> bool {
        if self.values.is_empty() {
            let value = claims.find(&self.name);
            return value.is_some_and(|it| !it.is_null());
        }
        claims.is_any_of(&self.name, &self.values)
    }
}
